/** Maintenance that the configuration itself says (C9.1). */
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { duration, list, optional, section, type Static, text } from '../../base/config/schema.ts'
import { unknownName } from '../../base/config/problem-text.ts'
import { compileAddressList } from '../../base/http/head/addresses.ts'
import { clientKeyProblem } from '../../identity/keys/issuers/issuers-schema.ts'
import { INSTANT_PATTERN } from '../../base/kernel/units.ts'
import { parseClosureScope, SCOPE_PATTERN, type ClosureScope, type MaintenanceSwitch } from './switch.ts'
import { messageOf } from '../../base/kernel/thrown.ts'

const instant = (description: string) =>
  text({
    description,
    pattern: INSTANT_PATTERN,
    expected: 'a time with its zone, such as "2026-02-01T20:00:00Z" or "2026-02-01T20:00+10:00"',
  })

const entrySchema = section({
  scope: text({
    pattern: SCOPE_PATTERN,
    expected: '"service", "identity", "business/CODE", "area/NAME" or "backend/NAME"',
    description: 'What is closed. `service` is the whole API.',
  }),
  from: optional(instant('Start. Default: at once.')),
  until: optional(instant('End. Default: when the entry is removed from the file.')),
  message: optional(text({ description: 'Text for clients instead of the fixed one.' })),
  retryAfter: optional(
    duration({
      orZero: true,
      description:
        'The `Retry-After` of answers. Default: the time that is left until `until`, or two minutes.',
    }),
  ),
  allowAddresses: list(text({ description: 'An address or a CIDR network.' }), {
    default: [],
    description: 'Addresses that may still call.',
  }),
  allowClients: list(text({ description: 'A client id.' }), {
    default: [],
    description: 'Client ids that may still call with a valid token; with several issuers `NAME:CLIENT`.',
  }),
})

export const maintenanceSchema = list(entrySchema, {
  default: [],
  takesAway: 'more',
  description:
    'Maintenance, now or planned. `postern maintenance` does the same without a change of this file.',
})

type MaintenanceConfig = Static<typeof maintenanceSchema>

/** What switches may name; undefined where that is not known without reading large files. */
export interface ClosableNames {
  readonly business: ReadonlySet<string> | undefined
  readonly area: ReadonlySet<string>
  readonly backend: ReadonlySet<string>
  readonly client: ReadonlySet<string> | undefined
  /** Undefined unless there are several: then clients are named with their issuer. */
  readonly issuer: ReadonlySet<string> | undefined
  /** Whether the store may have further clients and businesses. */
  readonly stored: boolean
  /** Names of entries that could not be read. */
  readonly unread?: ReadonlySet<string>
}

export interface SwitchProblem {
  /** A client that is not in the configuration: it may be in the store (C9.2). */
  readonly client?: string
  /** The same for a business. */
  readonly business?: string
  readonly member: 'scope' | 'from' | 'until' | 'addresses' | 'clients'
  readonly message: string
  readonly hint?: string | undefined
}

function nameProblem(
  what: Exclude<keyof ClosableNames, 'stored' | 'unread'>,
  name: string,
  names: ClosableNames,
): Pick<SwitchProblem, 'message' | 'hint'> | undefined {
  const known = names[what]
  if (known === undefined || known.has(name) || names.unread?.has(name) === true) return undefined
  return unknownName(what, name, known)
}

const scopeProblem = (scope: ClosureScope, names: ClosableNames) =>
  'name' in scope ? nameProblem(scope.kind, scope.name, names) : undefined

function addressProblem(addresses: readonly string[]): string | undefined {
  try {
    compileAddressList(addresses)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** Everything that would make a switch do something else than was meant. */
export function switchProblems(entry: MaintenanceSwitch, names: ClosableNames): SwitchProblem[] {
  const { scope, from, until, addresses = [], clients = [] } = entry
  const problems: SwitchProblem[] = []
  const wrongName = scopeProblem(scope, names)
  if (wrongName) {
    const business = names.stored && scope.kind === 'business' ? scope.name : undefined
    problems.push({ member: 'scope', ...(business !== undefined && { business }), ...wrongName })
  }
  if (Number.isNaN(from)) problems.push({ member: 'from', message: 'is no time of the calendar' })
  if (Number.isNaN(until)) problems.push({ member: 'until', message: 'is no time of the calendar' })
  if (from !== undefined && until !== undefined && until <= from)
    problems.push({ member: 'until', message: 'must be later than `from`' })
  const wrongAddress = addressProblem(addresses)
  if (wrongAddress !== undefined) problems.push({ member: 'addresses', message: wrongAddress })
  for (const id of clients) {
    const ambiguous = clientKeyProblem(id, names.issuer)
    if (ambiguous) problems.push({ member: 'clients', ...ambiguous })
    const wrong = nameProblem('client', id, names)
    if (wrong) problems.push({ member: 'clients', client: id, ...wrong })
  }
  return problems
}

function toSwitch(entry: MaintenanceConfig[number]): MaintenanceSwitch | undefined {
  const scope = parseClosureScope(entry.scope)
  if (scope === undefined) return undefined
  const { from, until, message, retryAfter, allowAddresses, allowClients } = entry
  return {
    scope,
    from: from === undefined ? undefined : Date.parse(from),
    until: until === undefined ? undefined : Date.parse(until),
    message,
    retryAfter: retryAfter === undefined ? undefined : Math.ceil(retryAfter / 1000),
    addresses: allowAddresses,
    clients: allowClients,
  }
}

const KEYS: Readonly<Record<SwitchProblem['member'], string>> = {
  scope: 'scope',
  from: 'from',
  until: 'until',
  addresses: 'allowAddresses',
  clients: 'allowClients',
}

/** Every problem goes to `problems`; the result is of use only if none is an error. */
export function compileMaintenance(
  config: MaintenanceConfig,
  names: ClosableNames,
  problems: Problems,
): readonly MaintenanceSwitch[] {
  return config.flatMap((entry, index) => {
    const compiled = toSwitch(entry)
    if (compiled === undefined) return []
    const at = (member: SwitchProblem['member']): KeyPath => ['maintenance', index, KEYS[member]]
    for (const { client, business, member, message, hint } of switchProblems(compiled, {
      ...names,
      unread: problems.unread,
    }))
      if (client !== undefined)
        problems.warn(at(member), `${message}; it passes if the store has one of that id`, hint)
      else if (business !== undefined)
        problems.warn(at(member), `${message}; it is closed if the store has one of that code`, hint)
      else problems.error(at(member), message, hint)
    return [compiled]
  })
}
