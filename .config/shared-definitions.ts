/** Sections that stand at several places of the published schema, written once. */

type Json = Record<string, unknown>

/** Characters from which on a section is worth a definition of its own. */
const WORTHWHILE = 800

const isSection = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && 'properties' in value && typeof value.properties === 'object'

interface Found {
  /** The keys under which it stands, and those of the sections around it. */
  readonly keys: Set<string>
  readonly around: Set<string>
  count: number
}

function collect(value: unknown, key: string, around: string, found: Map<string, Found>): void {
  if (typeof value !== 'object' || value === null) return
  if (isSection(value)) {
    const text = JSON.stringify(value)
    const known = found.get(text) ?? { keys: new Set(), around: new Set(), count: 0 }
    known.keys.add(key)
    known.around.add(around)
    known.count += 1
    if (text.length >= WORTHWHILE) found.set(text, known)
  }
  for (const [name, member] of Object.entries(value)) {
    const isName = name !== 'properties' && name !== 'items' && name !== 'oneOf' && !/^\d+$/.test(name)
    collect(member, isName ? name : key, isName ? key : around, found)
  }
}

/** The key of a section, or, where it has several, that of what holds them: `methods` for GET, POST … */
const nameOf = ({ keys, around }: Found): string => [...(keys.size === 1 ? keys : around)][0] ?? ''

/** Puts sections that are the same at several places into `definitions`, and references in their place. */
export function shareDefinitions(schema: Json, definitions: Json): Json {
  const found = new Map<string, Found>()
  collect(schema, '', '', found)
  const names = new Map<string, string>()
  for (const [text, each] of found)
    if (each.count > 1)
      names.set(text, unused(nameOf(each), [...names.values(), ...Object.keys(definitions)]))
  const shared: Json = {}
  const replace = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(replace)
    const name = isSection(value) ? names.get(JSON.stringify(value)) : undefined
    if (name === undefined) return members(value as Json)
    shared[name] ??= members(value as Json)
    return { $ref: `#/$defs/${name}` }
  }
  const members = (value: Json): Json =>
    Object.fromEntries(Object.entries(value).map(([key, member]) => [key, replace(member)]))
  return { ...members(schema), $defs: { ...definitions, ...shared } }
}

function unused(name: string, taken: readonly string[]): string {
  let free = name
  for (let number = 2; taken.includes(free); number += 1) free = `${name}${number}`
  return free
}
