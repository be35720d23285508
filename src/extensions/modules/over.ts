import { onAccountOf } from '../../base/config/modules/blame.ts'
import type {
  BodyMaking,
  ActionFacts,
  Backend,
  BackendAnswer,
  Call,
  CallBody,
  KeptOut,
  Payload,
  PossibleAnswers,
} from '../../base/contracts/calls/backend.ts'
import type {
  Forward,
  ForwardedBody,
  ForwardedCall,
  ForwardingModule,
  Json,
  OutgoingRequest,
  RequestChanges,
} from '../../base/contracts/calls/module.ts'
import { type JsonPointer, type JsonValue, parseJson, parseJsonInSlices } from '../../base/http/body/json.ts'
import type { PlainXmlRules } from '../../base/http/xml/plain-document.ts'
import { type After, after as realAfter, type Clock } from '../../base/kernel/clock.ts'
import { toFault } from '../../base/kernel/faults.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import { checkAnswer, checkHeaders, checkStatusOf, membersOf } from './answer.ts'
import { factsOf, streamOf } from './call.ts'
import {
  AnswerChecks,
  begunAnswer,
  closeModule,
  isWell,
  MODULE_FAULTS,
  type ModuleRules,
  type Question,
  questionOf,
  type QuestionRules,
  withoutStream,
} from './module.ts'
import { plainValue } from './value.ts'
import { Forwards } from './forwards.ts'
import { ReceivedAnswer, ReceivedBody } from './received-answer.ts'
import {
  type ChangeRules,
  checkChanges,
  NO_CHANGES,
  type PreparedRequest,
  prepareRequest,
} from './request.ts'

/**
 * Code of the user's that runs around a backend which forwards (C8.9). It has the formats of that backend, so that what
 * the code leaves alone passes as it would without it.
 */
export class ModuleOverForwarder implements Backend {
  readonly name: string
  readonly sendsAnything = true
  readonly format: 'json' | 'xml'
  readonly payload: Payload
  readonly types: Backend['types']
  readonly isSearched: boolean
  readonly ranges: 'bytes' | 'verbatim'
  readonly xml: PlainXmlRules | undefined
  readonly data: JsonPointer | undefined
  readonly namesValues: boolean
  readonly #module: ForwardingModule
  readonly #sender: HttpBackend
  readonly #rules: ModuleRules & QuestionRules
  readonly #clock: Clock
  readonly #answers: AnswerChecks

  /** @param under what it runs around; of an operation, that backend's view. It is closed by whoever opened it */
  constructor(
    module: ForwardingModule,
    under: HttpBackend,
    rules: ModuleRules,
    clock: Clock,
    after: After = realAfter,
  ) {
    const responseHeaders = [...under.rules.responseHeaders, ...rules.responseHeaders]
    this.name = rules.name
    this.#module = module
    this.#sender = rules.responseHeaders.length === 0 ? under : under.withRules({ responseHeaders })
    this.format = this.#sender.format
    this.payload = this.#sender.payload
    this.types = this.#sender.types
    this.isSearched = this.#sender.isSearched
    this.ranges = this.#sender.ranges
    this.xml = this.#sender.xml
    this.data = this.#sender.data
    this.namesValues = this.#sender.namesValues
    this.#rules = { ...rules, after }
    this.#clock = clock
    this.#answers = new AnswerChecks({ ...rules, responseHeaders }, clock, after)
  }

  /** The same module around another view of the same backend. */
  around(under: HttpBackend): ModuleOverForwarder {
    return new ModuleOverForwarder(this.#module, under, this.#rules, this.#clock, this.#rules.after)
  }

  get bodyUse(): BodyMaking | undefined {
    return this.#sender.bodyUse
  }

  get keptOut(): KeptOut | undefined {
    return this.#sender.keptOut
  }

  get requestHeaders(): ReadonlySet<string> | undefined {
    return this.#sender.requestHeaders
  }

  /** Rejects with a fault of C8.4: the forwarder's, `upstream_broken` for what the module does wrong, `upstream_timeout`. */
  answer(call: Call): Promise<BackendAnswer> {
    const setup = {
      module: this.#module,
      sender: this.#sender.at(call),
      answers: this.#answers,
      name: this.name,
    }
    return questionOf(call, this.#rules, (question) => new Run(call, question, setup).answer())
  }

  possibleAnswers(action: ActionFacts, method: string): PossibleAnswers {
    const under = this.#sender.possibleAnswers(action, method)
    return { ...under, faults: [...new Set([...under.faults, ...MODULE_FAULTS])] }
  }

  healthy(): boolean {
    return this.#sender.healthy() && isWell(this.#module, this.#rules)
  }

  close(): Promise<void> {
    return closeModule(this.#module, this.#rules)
  }
}

interface ModuleSetup {
  readonly module: ForwardingModule
  readonly sender: HttpBackend
  readonly answers: AnswerChecks
  readonly name: string
}

class Run {
  readonly #call: Call
  readonly #question: Question
  readonly #setup: ModuleSetup
  readonly #forwards: Forwards
  readonly #base: Call

  constructor(call: Call, question: Question, setup: ModuleSetup) {
    const { module, sender, answers } = setup
    this.#call = call
    this.#question = question
    this.#setup = setup
    this.#base = baseOf(call, module)
    this.#forwards = new Forwards(this.#base, sender, question, answers.rulesOf(call))
  }

  async answer(): Promise<BackendAnswer> {
    const { module } = this.#setup
    try {
      const view = await this.#view()
      if (module.answer === undefined) return await this.#withOneRequest(view)
      const forward: Forward = (changes) => this.#forward(changes)
      return await this.#question.run(async () => this.#finish(await module.answer?.(view, forward)))
    } catch (thrown) {
      throw this.#forwards.afterOthers(thrown)
    } finally {
      this.#forwards.end()
    }
  }

  /** `request` and `response`: each has its time; the forwarder has its own deadlines in between. */
  async #withOneRequest(view: ForwardedCall): Promise<BackendAnswer> {
    const { module } = this.#setup
    const changes = module.request && (await this.#question.run(() => module.request?.(view)))
    const received = await this.#forwards.send(changes)
    if (module.response === undefined) return received.body.pass()
    if (received.status === NOT_MODIFIED) {
      const confirmed = await received.body.pass()
      return { ...confirmed, headers: this.#weakened(confirmed.headers) }
    }
    return this.#question.run(async () => this.#finish(await module.response?.(view, received)))
  }

  #view(): Promise<ForwardedCall> {
    const { sender, answers } = this.#setup
    return forwardedCallOf(this.#call, this.#base, {
      ...answers.rulesOf(this.#call),
      sender,
      signal: this.#question.signal,
      bodyTaken: () => this.#forwards.bodyTaken(),
    })
  }

  /** Fails on the module's account: what it does not handle is its own, and never the end of the process. */
  #forward(changes: unknown): Promise<ReceivedAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<ReceivedAnswer>()
    const fail = (thrown: unknown): void => {
      // It was cancelled with its call: nobody waits for it any more.
      if (this.#forwards.isOver && toFault(thrown).code === 'client_gone') promise.catch(() => undefined)
      onAccountOf(this.#question, () => reject(thrown))
    }
    this.#forwards.send(changes).then(resolve, fail)
    return promise
  }

  async #finish(given: unknown): Promise<BackendAnswer> {
    if (given instanceof ReceivedAnswer) return this.#passed(given.body.pass())
    const { status = 200, headers = {}, body } = membersOf(given, 'an answer')
    if (body instanceof ReceivedBody)
      return this.#passed(body.pass(checkStatusOf(status), checkHeaders(membersOf(headers, 'headers'))))
    const { answers, name } = this.#setup
    const answer = await checkAnswer(given, answers.rulesOf(this.#call))
    const begun = await begunAnswer(answer, this.#call.method, this.#question)
    return { ...begun, headers: this.#weakened(begun.headers), answerFormat: { name, ...VALUE } }
  }

  async #passed(passing: Promise<BackendAnswer>): Promise<BackendAnswer> {
    const answer = await passing
    return this.#call.method === 'HEAD' ? withoutStream(answer) : answer
  }

  /** A strong entity tag of the upstream's is of the upstream's bytes (RFC 9110 §8.8.1). */
  #weakened(headers: BackendAnswer['headers']): BackendAnswer['headers'] {
    const { etag } = headers
    if (typeof etag !== 'string' || !etag.startsWith('"') || !this.#forwards.cameWith(etag)) return headers
    return { ...headers, etag: `W/${etag}` }
  }
}

const VALUE = { format: 'value', payload: 'bare' } as const
const NOT_MODIFIED = 304

/** Of the upstream's own bytes, which a module that sees the answer need not pass on. */
const OF_BYTES: ReadonlySet<string> = new Set(['accept-encoding', 'range', 'if-range'])
/** Of one representation, where an answer may be made of several. */
const OF_ONE: ReadonlySet<string> = new Set([...OF_BYTES, 'if-none-match', 'if-modified-since'])

/** What is sent upstream for a call before a module changes anything: one that sees the answer gets it whole. */
function baseOf(call: Call, module: ForwardingModule): Call {
  if (module.answer === undefined && module.response === undefined) return call
  const isHead = call.method === 'HEAD'
  const isRead = isHead || call.method === 'GET'
  const left = module.answer !== undefined && isRead ? OF_ONE : OF_BYTES
  const headers = Object.fromEntries(Object.entries(call.headers).filter(([name]) => !left.has(name)))
  return { ...call, headers, method: isHead ? 'GET' : call.method }
}

interface ViewRules extends ChangeRules {
  readonly sender: HttpBackend
  readonly signal: AbortSignal
  readonly bodyTaken: () => void
}

/** @param call as the client sent it @param base what is sent upstream for it if nothing is changed */
async function forwardedCallOf(call: Call, base: Call, rules: ViewRules): Promise<ForwardedCall> {
  const body = await bodyOf(call.body, rules)
  let upstream: OutgoingRequest | undefined
  return {
    ...factsOf(call, rules.signal),
    get body() {
      return body
    },
    get upstream() {
      return (upstream ??= outgoing(base, undefined, rules))
    },
  }
}

/** Bytes of JSON that are parsed at once, in about a millisecond. */
const AT_ONCE = 64 * 1024

async function bodyOf(body: CallBody, { sender, bodyTaken }: ViewRules): Promise<ForwardedBody> {
  if (body.kind === 'stream') return streamOf(body, bodyTaken)
  if (body.kind === 'value') return { kind: 'value', value: plainValue(body.value) as Json }
  if (body.kind === 'none') return body
  const { bytes, contentType } = body
  if ((sender.bodyUse?.recipe?.format ?? sender.format) !== 'json')
    return { kind: 'bytes', bytes, contentType }
  const large = bytes.length > AT_ONCE ? await parseJsonInSlices(bytes) : undefined
  return lazyValue(() => large ?? parseJson(bytes))
}

/** Many modules never look at it, and the bytes that were checked go on as they are. */
function lazyValue(parse: () => JsonValue): ForwardedBody {
  let parsed: { readonly value: Json } | undefined
  return {
    kind: 'value',
    get value() {
      return (parsed ??= { value: plainValue(parse()) as Json }).value
    },
  }
}

function outgoing(base: Call, prepared: PreparedRequest | undefined, rules: ViewRules): OutgoingRequest {
  const { sender } = rules
  const request = prepared ?? prepareRequest(base, sender, NO_CHANGES)
  const { method, path, query, call } = request
  const { body } = call
  const [target] = sender.targets.all
  return {
    method,
    path,
    query,
    target: `${target?.address.basePath ?? ''}${path}${query}`,
    host: sender.host ?? (sender.targets.all.length === 1 ? target?.address.host : undefined),
    body: body.kind === 'bytes' ? body.bytes : undefined,
    contentType: body.kind === 'bytes' || body.kind === 'stream' ? body.contentType : undefined,
    with: async (changes: RequestChanges) =>
      outgoing(base, prepareRequest(base, sender, await checkChanges(changes, rules)), rules),
  }
}
