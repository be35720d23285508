/** The businesses that a user may choose from, as the consent page shows them (C6.2.2). */
import type { Consents } from '../browser/consents.ts'
import type { BusinessChoice, Picker } from '../pages/picker.ts'
import type { Candidate } from './decide.ts'
import { type AuthorizationRequest, carry } from './request.ts'

/** From so many businesses on, the page has a search field. */
const SEARCHED_FROM = 8
/** At a time. */
const SHOWN = 20
/** Characters; a longer search finds nothing that a shorter one would not. */
const LONGEST_SEARCH = 100

interface View {
  readonly find: string
  readonly from: number
}

function viewOf({ params }: AuthorizationRequest): View {
  const from = params.get('from') ?? ''
  return {
    find: (params.get('find') ?? '').trim().slice(0, LONGEST_SEARCH),
    from: /^[0-9]{1,6}$/.test(from) ? Number(from) : 0,
  }
}

const folded = (text: string): string => text.normalize('NFKC').toLowerCase()

/** Whether each word of the search stands in the business's name or code. */
const finds = (find: string): ((choice: BusinessChoice) => boolean) => {
  const words = folded(find).split(/\s+/)
  return ({ code, name }) => {
    const text = folded(`${name} ${code}`)
    return words.every((word) => text.includes(word))
  }
}

async function allChoices(
  { namedClient }: AuthorizationRequest,
  subject: string,
  candidates: readonly Candidate[],
  consents: Pick<Consents, 'listOf'>,
): Promise<readonly BusinessChoice[]> {
  const given = await consents.listOf(subject)
  const before = new Set<string | null>(
    given.filter(({ client }) => client === namedClient.id).map(({ business }) => business),
  )
  return candidates
    .map(({ business: { code, name }, role }) => ({ code, name, role, before: before.has(code) }))
    .sort(
      (a, b) => Number(b.before) - Number(a.before) || a.name.localeCompare(b.name, 'en', { numeric: true }),
    )
}

/**
 * What the request's own parameters `find` and `from` leave of the candidates: those that the user has allowed this client
 * before come first, then by name.
 * @param at the address of an identity endpoint
 */
export async function pickerOf(
  request: AuthorizationRequest,
  subject: string,
  candidates: readonly Candidate[],
  { consents, at }: { readonly consents: Pick<Consents, 'listOf'>; readonly at: (path: string) => string },
): Promise<Picker> {
  const { find, from: wanted } = viewOf(request)
  const all = await allChoices(request, subject, candidates, consents)
  const found = all.length < SEARCHED_FROM || find === '' ? all : all.filter(finds(find))
  // There may be fewer now than when the link to a later page was made.
  const from = wanted < found.length ? wanted : 0
  const shown = found.slice(from, from + SHOWN)
  const pageFrom = (start: number): string =>
    at(
      `/connect/authorize?${carry(request, { find: find || undefined, from: start > 0 ? String(start) : undefined })}`,
    )
  return {
    choices: shown,
    isOnly: all.length === 1,
    found: found.length,
    from,
    search:
      all.length < SEARCHED_FROM
        ? undefined
        : {
            action: at('/connect/authorize'),
            find,
            request: carry(request, { find: undefined, from: undefined }),
          },
    previous: from > 0 ? pageFrom(Math.max(0, from - SHOWN)) : undefined,
    next: from + SHOWN < found.length ? pageFrom(from + SHOWN) : undefined,
  }
}
