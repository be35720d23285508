/** What was decided about a call of the past, as people read it on a terminal (C14.4). */
import { printable } from '../operator/text.ts'
import type { PastAnswer, PastCall } from '../watch/past-calls.ts'
import { explanationText } from './explanation-text.ts'

/** As the admin API answers it. */
export type AnsweredPast = Omit<PastAnswer, 'then'> & {
  readonly then: Omit<PastCall, 'at'> & { readonly at?: string | undefined }
}

const line = (text: string | undefined): string => (text === undefined ? '' : `  ${printable(text)}\n`)

function callerLine({ caller }: Pick<PastCall, 'caller'>): string {
  if (caller === undefined) return line('its token was not verified')
  const { client, subject, issuer, scope, target } = caller
  const of = issuer === undefined ? '' : ` of ${issuer}`
  const what = scope === undefined ? 'its scope is not told' : `scope "${scope}"`
  return line(`client ${client}${of}, subject ${subject}, ${target ?? 'no target'}, ${what}`)
}

function thenText(then: AnsweredPast['then']): string {
  const { at, method, path, status, reason, wouldRefuse, detail, accept, contentType } = then
  const reported =
    wouldRefuse === undefined ? '' : `, let in by a report-only area in spite of ${wouldRefuse}`
  const when = at === undefined ? '' : `, at ${at}`
  return [
    `then: ${status}${reason === undefined ? '' : ` ${reason}`}${reported}${when}\n`,
    line(`${method} ${path ?? '(a path that is not kept)'}`),
    callerLine(then),
    line(accept === undefined ? undefined : `Accept: ${accept}`),
    line(contentType === undefined ? undefined : `Content-Type: ${contentType}`),
    line(detail),
  ].join('')
}

const SAME = new Map([
  [true, 'the same'],
  [false, 'another decision'],
])

export function pastCallText({ then, now, difference }: AnsweredPast): string {
  const same = difference.same === undefined ? 'not known' : (SAME.get(difference.same) ?? '')
  return [
    thenText(then),
    `difference: ${same}. ${printable(difference.words)}\n`,
    now === undefined ? '' : `\nnow: ${explanationText(now)}`,
  ].join('')
}
