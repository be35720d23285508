/** The answer to a call that was tried, and why it was let in or refused, as people read them on a terminal. */
import type { Explanation } from '../contracts/explanation.ts'
import { printable } from '../operator/text.ts'
import { explanationText } from './explanation-text.ts'
import type { CallAnswer } from './make-call.ts'

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/** The body as text; undefined if it is none. */
function textOf({ body }: CallAnswer): string | undefined {
  try {
    return UTF_8.decode(body)
  } catch {
    return undefined
  }
}

/** JSON is indented. */
function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Lines and tabs stay: what else would change the terminal is escaped. */
const harmless = (text: string): string =>
  text
    .split(/(\r?\n|\t)/)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join('')

function bodyText(answer: CallAnswer): string {
  if (answer.body.length === 0) return ''
  const text = textOf(answer)
  return text === undefined
    ? `(${answer.body.length} bytes that are no text)\n`
    : `${harmless(laidOut(text))}\n`
}

export function answerText(answer: CallAnswer): string {
  const { status, reason, headers, cut } = answer
  return [
    `${printable(`${status} ${reason}`)}\n`,
    ...headers.map(([name, value]) => `${printable(`${name}: ${value}`)}\n`),
    '\n',
    bodyText(answer),
    cut === undefined ? '' : `(${cut})\n`,
  ].join('')
}

/** For programs: a body that is no text is base64. */
export function plainAnswer(answer: CallAnswer) {
  const { status, headers, body, cut } = answer
  const text = textOf(answer)
  const content = text === undefined ? { bodyBase64: body.toString('base64') } : { body: text }
  return { status, headers, ...content, ...(cut !== undefined && { cut }) }
}

/** What the answer of a backend lacks is in the record of the call. */
function askedText({ status, headers }: CallAnswer): string {
  const [, id] = headers.find(([name]) => name.toLowerCase() === 'x-request-id') ?? []
  if (status < 400 || id === undefined) return ''
  return `. The ${status} came of that; what went wrong there: postern explain --request ${printable(id)}`
}

/** Of a call that was let in, no check needs to be told. */
export function whyText(explanation: Explanation, answer: CallAnswer): string {
  const { outcome, action } = explanation
  if (outcome !== 'let in' || explanation.reportOnly?.wouldRefuse !== undefined)
    return `why: ${explanationText(explanation)}`
  const behind = action === undefined ? '' : `, and backend ${action.backend} was asked`
  return `why: let in: every check holds${behind}${askedText(answer)}\n`
}
