import type { ActionFacts, Backend, BackendAnswer, Call, PossibleAnswers } from '../../contracts/backend.ts'
import { answersByStatus } from '../forward/possible-answers.ts'
import type { ModuleBackend } from '../../contracts/module.ts'
import { type After, after as realAfter, type Clock } from '../../kernel/clock.ts'
import { type Blamed, onAccountOf } from '../../config/modules/blame.ts'
import { isBodiless } from '../../http/head.ts'
import type { FaultCode } from '../../kernel/faults.ts'
import { passedNames } from '../forward/response.ts'
import { type AnswerRules, checkAnswer } from './answer.ts'
import { callOf } from './call.ts'
import { begunAnswer, type ModuleFailed, type Question, questionOf, type QuestionRules } from './question.ts'

export interface ModuleRules {
  readonly name: string
  /** Milliseconds until an answer must have begun: of a stream, until its first piece. */
  readonly timeout: number
  /** Milliseconds between two pieces of a stream. */
  readonly idle: number
  readonly responseHeaders: readonly string[]
  /** Most bytes of a value as JSON. */
  readonly answerLimit: number
  /** Told of what the module's code threw where no call could be failed for it any more. Must not throw. */
  readonly failed: ModuleFailed
}

/** What a module fails with besides the statuses that it answers. */
export const MODULE_FAULTS: readonly FaultCode[] = ['upstream_timeout', 'upstream_broken', 'answer_too_large']

/** A file or package of the user's (C8.1). It runs in this process: its bugs are caught here, as far as that goes. */
export class UserModule implements Backend {
  readonly name: string
  readonly format = 'value'
  readonly payload = 'bare'
  readonly #module: ModuleBackend
  readonly #rules: ModuleRules & QuestionRules
  readonly #answers: AnswerChecks

  constructor(module: ModuleBackend, rules: ModuleRules, clock: Clock, after: After = realAfter) {
    this.name = rules.name
    this.#module = module
    this.#rules = { ...rules, after }
    this.#answers = new AnswerChecks(rules, clock, after)
  }

  /** Rejects with a fault of C8.4: `upstream_broken` for whatever the module does wrong, `upstream_timeout`. */
  answer(call: Call): Promise<BackendAnswer> {
    return questionOf(call, this.#rules, (question) => question.run(() => this.#ask(call, question)))
  }

  async #ask(call: Call, question: Question): Promise<BackendAnswer> {
    const given: unknown = await this.#module.answer(callOf(call, question.signal))
    return begunAnswer(await checkAnswer(given, this.#answers.rulesOf(call)), call.method, question)
  }

  possibleAnswers(_action: ActionFacts, method: string): PossibleAnswers {
    return answersByStatus({ method, faults: MODULE_FAULTS })
  }

  healthy(): boolean {
    return isWell(this.#module, this.#rules)
  }

  close(): Promise<void> {
    return closeModule(this.#module, this.#rules)
  }
}

/** What answers to a module's calls are checked by. */
export class AnswerChecks {
  readonly #rules: Pick<ModuleRules, 'idle' | 'answerLimit'>
  readonly #passed: ReadonlySet<string>
  readonly #clock: Clock
  readonly #after: After

  constructor(
    rules: Pick<ModuleRules, 'idle' | 'answerLimit' | 'responseHeaders'>,
    clock: Clock,
    after: After,
  ) {
    this.#rules = rules
    this.#passed = passedNames(rules.responseHeaders)
    this.#clock = clock
    this.#after = after
  }

  rulesOf({ headers, method }: Pick<Call, 'headers' | 'method'>): AnswerRules {
    const reads = isBodiless(method)
    return {
      passed: this.#passed,
      conditional:
        reads && (headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined),
      ranged: reads && headers['range'] !== undefined,
      now: this.#clock.now(),
      streams: { idle: this.#rules.idle, after: this.#after },
      limit: this.#rules.answerLimit,
    }
  }
}

/** What every module may have. */
export interface ModuleLife {
  healthy?(): boolean
  close?(): void | Promise<void>
}

/** What it does when it is asked for no call in particular. */
const ownAccount = ({ failed }: Pick<ModuleRules, 'failed'>): Blamed => ({
  failed: (thrown) => failed(thrown, undefined),
})

/** What throws cannot answer. */
export function isWell(module: ModuleLife, rules: Pick<ModuleRules, 'failed'>): boolean {
  try {
    return onAccountOf(ownAccount(rules), () => module.healthy?.()) !== false
  } catch {
    return false
  }
}

/** Never rejects: nothing is asked any more. */
export async function closeModule(module: ModuleLife, rules: Pick<ModuleRules, 'failed'>): Promise<void> {
  try {
    await onAccountOf(ownAccount(rules), () => module.close?.())
  } catch {
    // a module that cannot close must not keep others from closing
  }
}
