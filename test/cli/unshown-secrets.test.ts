/** A secret of a client is shown before it is stored (C11.5.1). */
import { PassThrough, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { runCommandLine } from '../../src/cli/command-line.ts'
import { runVerb } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'
import { DEMO } from '../support/spawn-postern.ts'

/** A reader that is gone. */
const gone = (): Writable =>
  new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  })

const setting = async () => ({ POSTERN_CONFIG: DEMO, POSTERN_DATA: await dataFolder() })

const TALLY = ['--kind', 'customer', '--name', 'Tally', '--agreement', '2026-01-15']
const ADD = ['client', 'add', 'tally', ...TALLY, '--business', 'ACME', '--scope', 'fund.read']

async function runUnread(args: readonly string[], env: Record<string, string>) {
  const [stdin, stderr] = [new PassThrough(), new PassThrough()]
  stdin.end()
  const told = text(stderr)
  const terminal = { env, stdin: stdin as unknown as NodeJS.ReadStream, stdout: gone(), stderr }
  const code = await runCommandLine([...args], terminal)
  stderr.end()
  return { code, stderr: await told }
}

describe('a secret that nobody can read', () => {
  it.each([
    ['as text', []],
    ['as JSON', ['--json']],
  ])('C11.5.1 makes no client: %s', async (_how, more) => {
    const env = await setting()
    const { code, stderr } = await runUnread([...ADD, ...more], env)
    expect([code, stderr]).toEqual([1, expect.stringContaining('nothing was stored: the secret could not')])
    expect((await runVerb(['client', 'show', 'tally'], { env })).code).toBe(1)
    expect(await runVerb(ADD, { env })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^client_id {6}tally\nclient_secret {2}[\w-]{43}\n$/),
    })
  })

  it('C11.5.1 takes the place of no secret before it', async () => {
    const env = await setting()
    await runVerb(ADD, { env })
    const before = await runVerb(['client', 'show', 'tally', '--json'], { env })
    const { code } = await runUnread(['client', 'rotate-secret', 'tally'], env)
    expect(code).toBe(1)
    expect((await runVerb(['client', 'show', 'tally', '--json'], { env })).stdout).toBe(before.stdout)
    const rotated = await runVerb(['client', 'rotate-secret', 'tally', '--json'], { env, alone: true })
    expect(JSON.parse(rotated.stdout)).toMatchObject({
      record: { id: 'tally', validSecrets: 2 },
      secret: expect.stringMatching(/^[\w-]{43}$/),
    })
  })
})
