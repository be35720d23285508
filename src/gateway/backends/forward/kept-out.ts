/**
 * Names by which calls tell the service their business (C8.7, T4.8). A service may look for such a name in the query, the
 * headers and the body alike, and use the first one that it finds. So a name that an operation uses in one of these places is
 * kept out of all of them in what clients send, for all operations of the backend.
 */
import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import type { WrittenTree } from '../../../base/config/schema.ts'
import type { KeptMembers } from '../../../base/contracts/calls/backend.ts'
import type { BodyRecipe, Placeholder, Template } from '../../../base/contracts/calls/templates.ts'
import { type BodySchema, typesOf } from '../../../base/http/body/body-schema.ts'
import { headerReading, isMadeByPostern } from '../../../base/http/head/end-to-end-headers.ts'
import { parseJsonPointer } from '../../../base/http/body/json.ts'
import { decodedMemberReadings, type KeptNames } from '../../../base/http/head/query.ts'
import type { PlainXmlRules } from '../../../base/http/xml/plain-document.ts'
import { isComparable, memberName } from '../templates/members.ts'
import { placeholdersIn, placeholdersInText, solePlaceholder } from '../templates/parse.ts'
import type { CallShape } from '../templates/check-templates.ts'
import { schemaAt } from './compile-body.ts'
import type { ExchangeRules } from './rules.ts'
import type { OperationUpstream } from './schema/schema.ts'

/** Whether it stands for a code of the address, or a value of the business. */
const isOfBusiness = ({ to }: Placeholder): boolean =>
  to.kind === 'value' || (to.kind === 'name' && (to.name === 'business' || to.name === 'fund'))

const tellsBusiness = (template: Template): boolean => placeholdersIn(template).some(isOfBusiness)
const textTellsBusiness = (text: string): boolean => placeholdersInText(text).some(isOfBusiness)

function treeTellsBusiness(tree: WrittenTree): boolean {
  if (typeof tree === 'string') return textTellsBusiness(tree)
  if (typeof tree !== 'object' || tree === null) return false
  if ('list' in tree) return tree.list.some(treeTellsBusiness)
  return 'members' in tree && tree.members.some(([, member]) => treeTellsBusiness(member))
}

type SharedRules = Pick<ExchangeRules, 'query' | 'headers' | 'format' | 'xml'>
type OwnSection = Pick<OperationUpstream, 'query' | 'headers' | 'body' | 'format' | 'xml'>

/**
 * The names by which calls of an operation tell the business, as they are written.
 * @param own the section of the operation, as it was loaded
 */
export function boundNames(shared: SharedRules, own: OwnSection = {}): readonly string[] {
  const { query = {}, headers = {}, body } = own
  const replaced = new Set(Object.keys(headers).map(headerReading))
  const names = [
    ...[...shared.query].flatMap(([name, text]) => (name in query || !tellsBusiness(text) ? [] : [name])),
    ...Object.entries(query).flatMap(([name, text]) => (textTellsBusiness(text) ? [name] : [])),
    ...[...shared.headers.values()].flatMap(({ written, template }) =>
      replaced.has(headerReading(written)) || !tellsBusiness(template) ? [] : [written],
    ),
    ...Object.entries(headers).flatMap(([name, text]) => (textTellsBusiness(text) ? [name] : [])),
    ...(body === undefined ? [] : boundMembers(body, hasRoot(shared, own))),
  ]
  return [...new Set(names)].filter(isComparable)
}

/** Whether the body that is sent is XML whose root is a member of the value. */
function hasRoot({ format: sharedFormat, xml: sharedXml }: SharedRules, own: OwnSection): boolean {
  const { body, format = sharedFormat } = own
  if ((body?.format ?? format) !== 'xml') return false
  if (body?.template !== undefined || format !== 'xml') return true
  const { dialect, root } = { ...sharedXml?.section, ...own.xml }
  return dialect === 'plain' && root === undefined
}

function boundMembers(
  { template, set = {}, require: required = {} }: NonNullable<OwnSection['body']>,
  isDocument: boolean,
): readonly string[] {
  const placed = [...Object.entries(set), ...Object.entries(required)].flatMap(([key, leaf]) => {
    const pointer = parseJsonPointer(key)
    const name = isDocument ? (pointer[1] ?? pointer[0]) : pointer[0]
    return name === undefined || !treeTellsBusiness(leaf) ? [] : [name]
  })
  const top = membersOf(template)
  const written = isDocument ? top.flatMap(([, root]) => membersOf(root)) : top
  const named = written.flatMap(([name, member]) => (treeTellsBusiness(member) ? [name] : []))
  return [...placed, ...named].map((name) => memberName(name, isDocument))
}

const membersOf = (tree: WrittenTree | undefined): readonly (readonly [string, WrittenTree])[] =>
  typeof tree === 'object' && tree !== null && 'members' in tree ? tree.members : []

/** What a client's calls of an operation lose because of these names, for the check of the configuration. */
export interface LostName {
  readonly name: string
  readonly place: 'query' | 'headers' | 'body'
  /** The operation: `GET fund-data/fund-list`. */
  readonly of: string
}

/** The names of all operations of a backend. `lost` is filled as the operations are compiled. */
export interface BoundNames {
  readonly names: readonly string[]
  readonly lost: LostName[]
}

interface KeptContext {
  readonly bound: BoundNames
  /** Those of the operation itself. */
  readonly own: readonly string[]
  readonly rules: Pick<ExchangeRules, 'query' | 'queryOnly' | 'headers' | 'requestHeaders' | 'format' | 'xml'>
  readonly recipe: BodyRecipe | undefined
  readonly calls: CallShape
  readonly method: string
  readonly consumes: readonly string[] | undefined
  /** The section of the operation. */
  readonly at: KeyPath
}

/** What is kept out of the calls of an operation; undefined: nothing. Warns of what passes nevertheless. */
export function compileKeptOut(context: KeptContext, problems: Problems): ExchangeRules['keptOut'] {
  const { bound, consumes, at } = context
  const { names } = bound
  if (names.length === 0) return undefined
  const query = keptQuery(context, problems)
  const members = keptMembers(context, problems)
  noteLost(context, query, members)
  if (consumes !== undefined && consumes.some(mayHoldNames))
    problems.warn(
      [...at, 'consumes'],
      `streams bodies unread, and the service may find ${listedNames(names)} in them, by which calls of this backend tell the business`,
      'let {business} stand in `path`, or list only media types without fields or members',
    )
  return { query, headers: keptHeaders(names), members }
}

/**
 * What clients of an operation may miss: names that it lists itself, and, where it is open to any name, those that only
 * other operations have.
 */
function noteLost(
  { bound, own, rules, calls, method }: KeptContext,
  query: KeptNames,
  members: KeptMembers | undefined,
): void {
  const { body } = calls
  const others = bound.names.filter((name) => !own.includes(name))
  const properties = body?.kind === 'read' ? Object.keys(body.schema?.properties ?? {}) : []
  const headers = new Set([...rules.headers.keys()].map(headerReading))
  const lost: Readonly<Record<LostName['place'], readonly string[]>> = {
    query: query.names.filter(
      (name) =>
        !isDeclared(name, query.declared) &&
        (rules.queryOnly === undefined ? others.includes(name) : isDeclared(name, rules.queryOnly)),
    ),
    headers: bound.names.filter(
      (name) => !headers.has(headerReading(name)) && isDeclared(name, [...(rules.requestHeaders ?? [])]),
    ),
    body: (members?.names ?? []).filter((name) => others.includes(name) || isDeclared(name, properties)),
  }
  const of = `${method} ${calls.described}`
  for (const place of ['query', 'headers', 'body'] as const)
    for (const name of lost[place]) bound.lost.push({ name, place, of })
}

/** The same for calls that match no operation, which a report-only area forwards: nothing of them was checked. */
export const keptOutOfUnmatched = (
  { query }: Pick<ExchangeRules, 'query'>,
  { names }: BoundNames,
): ExchangeRules['keptOut'] =>
  names.length === 0
    ? undefined
    : {
        query: { names: names.filter((name) => !query.has(name)), declared: [] },
        headers: keptHeaders(names),
        members: undefined,
      }

const isLike = (name: string) => {
  const readings = new Set(decodedMemberReadings(name))
  return (others: readonly string[]): boolean => others.some((other) => readings.has(other))
}

const isDeclared = (name: string, declared: readonly string[]): boolean =>
  declared.map(decodedMemberReadings).some(isLike(name))

/** A header that HTTP itself reads is not a name of the business. */
const keptHeaders = (names: readonly string[]): ReadonlySet<string> =>
  new Set(
    names
      .filter((name) => !isMadeByPostern(name))
      .flatMap((name) => [headerReading(name), ...decodedMemberReadings(name)]),
  )

function keptQuery({ bound, rules, calls, at }: KeptContext, problems: Problems): KeptNames {
  const names = bound.names.filter((name) => !rules.query.has(name))
  const declared = (calls.query ?? []).map(({ name }) => name)
  for (const name of names)
    if (isDeclared(name, declared))
      problems.warn(
        [...at, 'parameters'],
        `lets a client send "${name}" in the query, and calls of this backend tell the business by that name`,
        'leave the parameter out if the service takes it for the business',
      )
  return { names, declared }
}

/** Undefined if no part of the client's body reaches the service in its own place, or its schema says which members do. */
function keptMembers(
  { bound, rules, recipe, calls, at }: KeptContext,
  problems: Problems,
): KeptMembers | undefined {
  const { body } = calls
  const part = partSent(recipe)
  if (body?.kind !== 'read' || part === undefined) return undefined
  const isXml = (recipe?.format ?? rules.format) === 'xml'
  const isDocument = isXml && isOfDocument(rules.xml?.rules, recipe, rules.format)
  const placed = [...(recipe?.set ?? []), ...(recipe?.require ?? [])].map(({ pointer }) =>
    memberName((isDocument ? pointer[1] : pointer[0]) ?? '', isXml),
  )
  const names = bound.names.filter((name) => !isDeclared(name, placed))
  const members = closedNames(schemaAt(body.schema, part), isDocument)
  if (members === undefined) return names.length === 0 ? undefined : { names, isXml, part, isDocument }
  const declared = members.map((name) => memberName(name, isXml))
  for (const name of names)
    if (isDeclared(name, declared))
      problems.warn(
        [...at, 'body', 'schema'],
        `lets a client send "${name}" in the body, and calls of this backend tell the business by that name`,
        'leave the member out if the service takes it for the business',
      )
  return undefined
}

/** Names that no field may hide in a form that is sent on byte for byte: all except those that the operation has itself. */
export function hiddenNames(
  { names }: BoundNames,
  { set, require: required }: BodyRecipe,
  { body }: CallShape,
): readonly string[] {
  const schema = body?.kind === 'read' ? body.schema : undefined
  const own = [
    ...[...set, ...required].map(({ pointer }) => pointer[0] ?? ''),
    ...Object.keys(schema?.properties ?? {}),
  ]
  return names.filter((name) => !isDeclared(name, own))
}

/** The part of a client's body whose members are sent as members of the whole; undefined: there is none. */
function partSent(recipe: BodyRecipe | undefined): KeptMembers['part'] | undefined {
  const template = recipe?.template
  if (template === undefined) return []
  const to = template.kind === 'template' ? solePlaceholder(template.template)?.to : undefined
  return to?.kind === 'body' ? to.pointer : undefined
}

const isOfDocument = (
  xml: PlainXmlRules | undefined,
  recipe: BodyRecipe | undefined,
  format: ExchangeRules['format'],
): boolean =>
  recipe?.template !== undefined || format !== 'xml' || (xml !== undefined && xml.root === undefined)

/** The members that a closed schema allows, for a document those of its roots; undefined: a client may add others. */
function closedNames(schema: BodySchema | undefined, isDocument: boolean): readonly string[] | undefined {
  if (schema?.additionalProperties !== false) return undefined
  const properties = Object.entries(schema.properties ?? {})
  if (!isDocument) return properties.map(([name]) => name)
  const below = properties.map(([, root]) => (isScalar(root) ? [] : closedNames(root, false)))
  return below.includes(undefined) ? undefined : below.flatMap((names) => names ?? [])
}

const isScalar = (schema: BodySchema): boolean => {
  const types = typesOf(schema)
  return types.length > 0 && !types.includes('object') && !types.includes('array')
}

/** Media types whose bodies services read fields or members from. */
const WITH_NAMES =
  /^(?:\*|application|multipart|text)\/(?:\*|form-data|x-www-form-urlencoded|.*\b(?:json|xml))/i

const mayHoldNames = (type: string): boolean => WITH_NAMES.test(type)

/** How many names or operations a message lists. */
const TOLD = 5

const listedNames = (names: readonly string[]): string => {
  const told = names.slice(0, TOLD).map((name) => `"${name}"`)
  return told.join(', ') + (names.length > TOLD ? ` and ${names.length - TOLD} more` : '')
}

const PLACES: Readonly<Record<LostName['place'], (names: string) => string>> = {
  query: (names) => `takes ${names} out of the query of clients`,
  headers: (names) => `leaves out the header ${names} of clients`,
  body: (names) => `refuses ${names} in the bodies of clients`,
}

/** Warns once for each backend and place. */
export function warnOfLostNames(
  backend: string,
  { lost }: Pick<BoundNames, 'lost'>,
  problems: Problems,
): void {
  for (const [place, all] of Map.groupBy(lost, (each) => each.place)) {
    const operations = [...new Set(all.map(({ of }) => of))]
    const more = operations.length > TOLD ? ` and ${operations.length - TOLD} more` : ''
    problems.warn(
      ['backends', backend],
      `${PLACES[place](listedNames([...new Set(all.map(({ name }) => name))]))}, since calls tell the business by that name: ${operations.slice(0, TOLD).join(', ')}${more}`,
      HINTS[place],
    )
  }
}

const HINTS: Readonly<Record<LostName['place'], string>> = {
  query: 'say by `queryOnly` what may pass, or declare the name in `parameters` where another thing is meant',
  headers: 'take the name out of `requestHeaders`',
  body: 'say `additionalProperties: false` in the schema, which may declare the name where another thing is meant',
}
