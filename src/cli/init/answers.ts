/** The answers that `postern init` needs: from options, from questions on the terminal, and from defaults. */
import {
  CLIENT_ID_PATTERN,
  CODE_PATTERN,
  NAME_EXPECTED,
  DISPLAY_NAME_PATTERN,
  USERNAME_EXPECTED,
  USERNAME_PATTERN,
} from '../../identity/directory/records/schema.ts'
import type { FirstBusiness } from '../../operate/hooks/first-configuration.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { UsageError } from '../../operate/operation/verb.ts'
import { UPSTREAM_PATTERN } from '../../gateway/upstream/socket.ts'
import { type PromptUser, questionsOn } from '../../operate/operation/questions.ts'

export interface Answers {
  /** An http or https URL. */
  readonly upstream: string
  /** At least one. */
  readonly businesses: readonly FirstBusiness[]
  readonly client: string
  readonly user: string
}

/** The options that answer a question. */
export interface GivenAnswers {
  readonly upstream?: string | undefined
  readonly business?: readonly string[] | undefined
  readonly client?: string | undefined
  readonly user?: string | undefined
}

interface Question {
  readonly option: string
  readonly asks: string
  readonly pattern: RegExp
  /** Follows "expected". */
  readonly expected: string
}

const BUSINESS = /^([^=\s]+)(?:=(.+))?$/
const NAME = new RegExp(DISPLAY_NAME_PATTERN, 'u')

const QUESTIONS = {
  upstream: {
    option: '--upstream',
    asks: 'URL of your service',
    pattern: new RegExp(UPSTREAM_PATTERN),
    expected: 'a URL such as http://127.0.0.1:9000, without a user or a fragment',
  },
  business: {
    option: '--business',
    asks: 'Codes of its businesses, separated by spaces',
    pattern: new RegExp(CODE_PATTERN),
    expected: 'a code that can stand in a path, such as ACME',
  },
  client: {
    option: '--client',
    asks: 'Id of the first client',
    pattern: new RegExp(CLIENT_ID_PATTERN),
    expected: 'at most 128 characters of ASCII, without spaces and colons',
  },
  user: {
    option: '--user',
    asks: 'Name of the first user',
    pattern: new RegExp(USERNAME_PATTERN, 'u'),
    expected: USERNAME_EXPECTED,
  },
} as const satisfies Readonly<Record<keyof GivenAnswers, Question>>

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

/** @throws UsageError */
function checked(value: string, { option, pattern, expected }: Question): string {
  if (!pattern.test(value)) throw new UsageError(`${option}: expected ${expected}, got "${value}"`)
  return value
}

/** `ACME`, or `ACME=Acme Advisory`. */
function businessOf(text: string): FirstBusiness {
  const [, code = text, name = code] = BUSINESS.exec(text) ?? []
  checked(code, QUESTIONS.business)
  if (!NAME.test(name)) throw new UsageError(`--business: expected ${NAME_EXPECTED}`)
  return { code, name }
}

function businessesOf(texts: readonly string[]): readonly FirstBusiness[] {
  const all = texts.map(businessOf)
  const twice = all.find(({ code }, at) => all.findIndex((each) => isSame(each.code, code)) !== at)
  if (twice !== undefined) throw new UsageError(`--business: ${twice.code} stands twice`)
  return all
}

const takeUsual: PromptUser = (_question, usual, read) => Promise.resolve(read(usual))

async function answersBy(ask: PromptUser, given: GivenAnswers, upstream: string): Promise<Answers> {
  const one = (name: 'upstream' | 'client' | 'user', usual: string): string | Promise<string> => {
    const read = (answer: string): string => checked(answer, QUESTIONS[name])
    const value = given[name]
    return value === undefined ? ask(QUESTIONS[name], usual, read) : read(value)
  }
  return {
    upstream: await one('upstream', upstream),
    businesses: given.business
      ? businessesOf(given.business)
      : await ask(QUESTIONS.business, 'EXAMPLE', (answer) => businessesOf(answer.split(/[\s,]+/))),
    client: await one('client', 'first-client'),
    user: await one('user', 'first-user'),
  }
}

/**
 * A value that is not given is asked for on a terminal; without one, or with `yes`, it is the default.
 *
 * @param upstream the usual address of the service
 * @throws UsageError if an option has a value that cannot be
 */
export async function answersOf(
  given: GivenAnswers,
  { upstream, yes }: { readonly upstream: string; readonly yes: boolean },
  terminal: Terminal,
): Promise<Answers> {
  if (yes || !terminal.stdin.isTTY) return answersBy(takeUsual, given, upstream)
  const { ask, close } = questionsOn(terminal)
  try {
    return await answersBy(ask, given, upstream)
  } finally {
    close()
  }
}
