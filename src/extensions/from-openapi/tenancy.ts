/** Where the service takes the business from, and what each business is called there: from options, or asked. */
import type { ValuesByBusiness, FirstBusiness } from '../../operate/hooks/first-configuration.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { UsageError } from '../../operate/operation/verb.ts'
import {
  type BusinessPlace,
  countedText,
  keysIn,
  type NamedPlace,
  PLACE_EXPECTED,
  placeText,
  type ProposedPlaces,
  readNotBusiness,
  readPlace,
} from './places.ts'
import { questionsOn } from '../../operate/operation/questions.ts'

const VALUE = /^([^=]+)\.([A-Za-z][A-Za-z0-9_-]{0,63})=(.+)$/s

/** @throws UsageError */
export const placesGiven = (texts: readonly string[]): readonly BusinessPlace[] =>
  texts.map((text) => {
    const place = readPlace(text)
    if (place === undefined) throw new UsageError(`--business-in: expected ${PLACE_EXPECTED}, got "${text}"`)
    return place
  })

/** @throws UsageError */
export const notBusinessGiven = (texts: readonly string[]): readonly NamedPlace[] =>
  texts.map((text) => {
    const place = readNotBusiness(text)
    if (place === undefined)
      throw new UsageError(
        `--not-business: expected header:NAME, path:NAME, query:NAME, cookie:NAME or body:/POINTER, got "${text}"`,
      )
    return place
  })

/** How many places are listed. */
const MOST_LISTED = 12

/** Asks where the business is written. A place is chosen by its number in the list. */
export async function placesChosen(
  { all, usual }: ProposedPlaces,
  terminal: Terminal,
): Promise<readonly BusinessPlace[]> {
  const listed = all.slice(0, MOST_LISTED)
  const { ask, close } = questionsOn(terminal)
  terminal.stderr.write('Where your service may take the business from:\n')
  for (const [at, place] of listed.entries())
    terminal.stderr.write(`  ${String(at + 1).padStart(2)}  ${countedText(place)}\n`)
  terminal.stderr.write('  identity: it reads the header X-Postern-Business\n')
  const question = {
    option: '--business-in',
    asks: 'Places by number or name, with spaces between them; with = and what stands there if that is not the code, such as 1={business.tenant}',
  }
  const standard = usual.length === 0 ? 'identity' : usual.map(placeText).join(' ')
  try {
    return await ask(question, standard, (answer) =>
      placesGiven(
        answer.split(/\s+/).map((word) => {
          const [, number = '', rest = ''] = /^(\d+)(=.*)?$/.exec(word) ?? []
          const place = listed[Number(number) - 1]
          return place === undefined ? word : `${placeText(place)}${rest}`
        }),
      ),
    )
  } finally {
    close()
  }
}

/** The values given by options such as `--value ACME.tenant=t-7`. @throws UsageError */
function valuesGiven(texts: readonly string[], businesses: readonly FirstBusiness[]): ValuesByBusiness {
  const values: Record<string, Record<string, string>> = {}
  for (const text of texts) {
    const [, code = '', key = '', value = ''] = VALUE.exec(text) ?? []
    if (code === '') throw new UsageError(`--value: expected CODE.KEY=VALUE, got "${text}"`)
    if (!businesses.some((business) => business.code === code))
      throw new UsageError(
        `--value ${text}: there is no business ${code}. There are ${businesses.map((each) => each.code).join(', ')}`,
      )
    ;(values[code] ??= {})[key] = value
  }
  return values
}

/**
 * The values of each business. Those that places name and no option gives are asked on a terminal.
 *
 * @throws UsageError if one is missing and nobody can be asked
 */
export async function valuesOf(
  texts: readonly string[],
  places: readonly BusinessPlace[],
  businesses: readonly FirstBusiness[],
  terminal: Terminal | undefined,
): Promise<ValuesByBusiness> {
  const values = valuesGiven(texts, businesses)
  const missing = businesses.flatMap(({ code }) =>
    keysIn(places).flatMap((key) => (values[code]?.[key] === undefined ? [{ code, key }] : [])),
  )
  if (missing.length === 0) return values
  if (terminal === undefined)
    throw new UsageError(
      `businesses lack a value: write ${missing.map(({ code, key }) => `--value ${code}.${key}=…`).join(' ')}`,
    )
  const all: Record<string, Record<string, string>> = structuredClone(values)
  const { ask, close } = questionsOn(terminal)
  try {
    for (const { code, key } of missing) {
      const question = { option: '--value', asks: `Value "${key}" of the business ${code}` }
      ;(all[code] ??= {})[key] = await ask(question, code, (answer) => answer)
    }
  } finally {
    close()
  }
  return all
}
