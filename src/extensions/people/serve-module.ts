/** The code in the thread of the module (C5.7), which may block without stopping others. */
import type { MessagePort } from 'node:worker_threads'
import { onAccountOf } from '../../base/config/modules/blame.ts'
import {
  defaultExportOf,
  importSource,
  type LoadedFile,
  loadedFilesOf,
  type ModuleSource,
} from '../../base/config/modules/import-file.ts'
import { errorInWords } from '../../base/config/modules/open-module.ts'
import type { PeopleModule } from '../../base/contracts/people/people-module.ts'
import { monotonicMs } from '../../base/kernel/clock.ts'
import { type ErrorFacts, errorFacts } from './error-for-log.ts'
import { kindInWords, PersonMistake, plainPerson } from './plain-person.ts'

export type CallName = 'findUserByName' | 'findUserBySubject' | 'verifyPassword'

export interface ModulePlan {
  readonly source: ModuleSource
  readonly options: unknown
  /** One Int32: the number of the last call that was begun. The other thread reads it when this one answers no more. */
  readonly begun: SharedArrayBuffer
}

export interface ThreadData {
  readonly plan: ModulePlan
  readonly port: MessagePort
}

export interface CallMessage {
  /** Numbers rise. */
  readonly call: number
  readonly name: CallName
  readonly args: readonly unknown[]
  /** `monotonicMs` after which nobody waits for the answer. */
  readonly deadline: number
}

export type ModuleMessage = CallMessage | { readonly abort: number } | 'ping' | 'close'

export type CallReply =
  | { readonly call: number; readonly value: unknown }
  | { readonly call: number; readonly mistake: string }
  /** @property stray it was thrown where nobody catches, and must be logged even if the call is over */
  | { readonly call: number; readonly threw: ErrorFacts; readonly stray: boolean }

export type PeopleThreadMessage =
  | CallReply
  | { readonly opened: true }
  | { readonly opened: false; readonly reason: string }
  | { readonly failed: ErrorFacts }
  /** All files that it consists of so far. */
  | { readonly files: readonly LoadedFile[] }
  | 'pong'
  | 'closed'

export function serveModule(
  port: Pick<MessagePort, 'on' | 'postMessage'>,
  plan: ModulePlan,
  load: (source: ModuleSource) => unknown = importSource,
): void {
  const served = new ServedModule((message) => port.postMessage(message), plan)
  port.on('message', (message: ModuleMessage) => served.receive(message))
  void served.open(load)
}

class ServedModule {
  readonly #send: (message: PeopleThreadMessage) => void
  readonly #plan: ModulePlan
  readonly #begun: Int32Array
  readonly #aborts = new Map<number, () => void>()
  #module: PeopleModule | undefined
  #filesReported = 0

  constructor(send: (message: PeopleThreadMessage) => void, plan: ModulePlan) {
    this.#send = send
    this.#plan = plan
    this.#begun = new Int32Array(plan.begun)
  }

  async open(load: (source: ModuleSource) => unknown): Promise<void> {
    const { source, options } = this.#plan
    try {
      const opening = async (): Promise<PeopleModule> => make(await load(source), options)
      this.#module = await onAccountOf({ failed: this.#failed }, opening)
      this.#reportFiles()
      this.#send({ opened: true })
    } catch (thrown) {
      this.#send({ opened: false, reason: `${errorInWords(thrown)}${adviceFor(thrown)}` })
    }
  }

  receive(message: ModuleMessage): void {
    if (message === 'ping') this.#send('pong')
    else if (message === 'close') void this.#close()
    else if ('abort' in message) this.#aborts.get(message.abort)?.()
    else this.#begin(message)
  }

  readonly #failed = (thrown: unknown): void => this.#send({ failed: errorFacts(thrown) })

  #begin(message: CallMessage): void {
    const { call, name, args, deadline } = message
    // It has waited behind work that blocks: nobody waits for it any more.
    if (monotonicMs() > deadline) return
    Atomics.store(this.#begun, 0, call)
    const secrets = name === 'verifyPassword' ? [String(args[1])] : []
    const stop = new AbortController()
    let over = false
    const answer = (reply: CallReply): void => {
      if (over) return
      over = true
      this.#aborts.delete(call)
      this.#send(reply)
      this.#reportFiles()
    }
    const account = {
      failed: (thrown: unknown): void => {
        const threw = errorFacts(thrown, secrets)
        if (over) this.#send({ failed: threw })
        else answer({ call, threw, stray: true })
      },
    }
    this.#aborts.set(call, () => {
      over = true
      this.#aborts.delete(call)
      // Its listeners are the module's, and may throw.
      onAccountOf(account, () => stop.abort())
    })
    onAccountOf(account, async () => plainAnswer(name, await this.#call(name, args, stop.signal))).then(
      (value) => answer({ call, value }),
      (thrown: unknown) =>
        answer(
          thrown instanceof PersonMistake
            ? { call, mistake: thrown.message }
            : { call, threw: errorFacts(thrown, secrets), stray: false },
        ),
    )
  }

  #call(name: CallName, args: readonly unknown[], signal: AbortSignal): unknown {
    const functions = this.#module as unknown as Record<CallName, (...args: readonly unknown[]) => unknown>
    return functions[name](...args, { signal })
  }

  /** A file that is imported at a call is known from then on. */
  #reportFiles(): void {
    const files = loadedFilesOf(this.#plan.source)
    if (files.length === this.#filesReported) return
    this.#filesReported = files.length
    this.#send({ files })
  }

  async #close(): Promise<void> {
    try {
      await onAccountOf({ failed: this.#failed }, () => this.#module?.close?.())
    } catch (thrown) {
      this.#failed(thrown)
    }
    this.#send('closed')
  }
}

/** @throws PersonMistake */
function plainAnswer(name: CallName, answer: unknown): unknown {
  if (name !== 'verifyPassword') return plainPerson(answer)
  if (typeof answer === 'boolean') return answer
  throw new PersonMistake(`the answer is ${kindInWords(answer)}; expected true or false`)
}

const FUNCTIONS = [
  'findUserByName',
  'findUserBySubject',
  'verifyPassword',
] as const satisfies readonly CallName[]

/** The result of a default export that is a function; otherwise the default export itself, or all exports without one. */
async function make(exports: unknown, options: unknown): Promise<PeopleModule> {
  const factory = defaultExportOf(exports)
  const made: unknown =
    typeof factory === 'function'
      ? await (factory as (options: unknown) => unknown)(options)
      : (factory ?? exports)
  for (const name of FUNCTIONS)
    if (!hasFunction(made, name)) throw new Error(`it has no function \`${name}\``)
  return made as PeopleModule
}

const hasFunction = (made: unknown, name: string): boolean =>
  typeof made === 'object' &&
  made !== null &&
  typeof (made as Readonly<Record<string, unknown>>)[name] === 'function'

/** By code of Node: what does not work in a thread. */
const ADVICE: Readonly<Record<string, string>> = {
  ERR_WORKER_UNSUPPORTED_OPERATION:
    'It runs in a thread of its own, which cannot change what the whole process has: process.chdir, umask, setuid and setgid',
  ERR_NON_CONTEXT_AWARE_DISABLED:
    'It runs in a thread of its own, where an add-on must be made for threads (context-aware, or Node-API)',
}

function adviceFor(thrown: unknown): string {
  const { code } = (thrown ?? {}) as { readonly code?: unknown }
  const advice = typeof code === 'string' && Object.hasOwn(ADVICE, code) ? ADVICE[code] : undefined
  return advice === undefined ? '' : `. ${advice}`
}
