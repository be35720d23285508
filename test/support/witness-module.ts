import { channel } from 'node:diagnostics_channel'
import { text } from 'node:stream/consumers'
import type { Module, ModuleCall } from '../../src/base/contracts/calls/module.ts'

/** What a module was given, told once its body is whole. */
export interface WitnessedCall {
  readonly call: ModuleCall
  /** Method and path, as far as a module learns of them. */
  readonly method: string
  readonly target: string
  readonly headers: ModuleCall['headers']
  readonly body: string
}

export interface WitnessOptions {
  /** Of the channel on which calls are told: the gateway imports modules itself, so that no other memory is shared. */
  readonly channel: string
}

/** A module (C8.1) that tells of each call, and answers what was asked for. */
export default function createWitness(options: WitnessOptions): Module {
  const told = channel(options.channel)
  return {
    answer: async (call) => {
      const target = targetOf(call)
      const { method, headers } = call
      const witnessed: WitnessedCall = { call, method, target, headers, body: await bodyOf(call) }
      told.publish(witnessed)
      return { body: { kind: 'value', value: { target } } }
    },
  }
}

function targetOf({ action, params, business, fund, query }: ModuleCall): string {
  const place = fund === undefined ? `b/${business}` : `f/${business}/${fund}`
  const path = action.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '')
  return `/api/1.0/${place}/${path}${query.size > 0 ? `?${query.toString()}` : ''}`
}

async function bodyOf({ body }: ModuleCall): Promise<string> {
  if (body.kind === 'stream') return text(body.stream)
  return body.kind === 'value' ? JSON.stringify(body.value) : ''
}
