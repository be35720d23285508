/** `upstream.body` of an operation (C8.7), checked and compiled. */
import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import type { WrittenTree } from '../../../base/config/schema.ts'
import type { BodyMaking, Call } from '../../../base/contracts/calls/backend.ts'
import type {
  BodyRecipe,
  BodyTree,
  Leaf,
  PlacedLeaf,
  Placeholder,
  PlaceholderValues,
} from '../../../base/contracts/calls/templates.ts'
import { type BodySchema, memberSchema, typesOf } from '../../../base/http/body/body-schema.ts'
import { isBodiless } from '../../../base/http/head/head.ts'
import { isHeaderValue } from '../../../base/http/head/header-text.ts'
import {
  type JsonPointer,
  type JsonValue,
  parseJsonPointer,
  parseNumberLiteral,
  pointerText,
} from '../../../base/http/body/json.ts'
import { MEDIA_TYPE_OF, parseContentType } from '../../../base/http/head/media-type.ts'
import { toFault } from '../../../base/kernel/faults.ts'
import { buildBody } from '../templates/body.ts'
import {
  placeholdersInTree,
  placeholdersOfBody,
  templatesInTree,
  withLeaves,
} from '../templates/body-tree.ts'
import { isComparable } from '../templates/members.ts'
import { parseTemplate, solePlaceholder } from '../templates/parse.ts'
import { findValue, unsendable } from '../templates/sources.ts'
import { type CallShape, usedIn, type UsedTemplate } from '../templates/check-templates.ts'
import type { BodyConfig } from './schema/schema.ts'

interface BodyContext {
  /** The format of the backend, or of the operation. */
  readonly format: 'json' | 'xml'
  /** The method that is sent. */
  readonly method: string
  readonly calls: CallShape
}

const MOST_LEVELS = 64
const MOST_LEAVES = 1000

/** Undefined where a problem was reported that leaves nothing to send. @param at the section `upstream` */
export function compileBodyRecipe(
  config: BodyConfig,
  context: BodyContext,
  at: KeyPath,
  problems: Problems,
): BodyRecipe | undefined {
  const path = [...at, 'body']
  const before = problems.list.length
  const refusal = refusalOf(config, context)
  if (refusal !== undefined) {
    problems.error([...path, ...refusal.key], refusal.why)
    return undefined
  }
  const format = config.format ?? context.format
  const recipe: BodyRecipe = {
    format,
    type: compileType(config.type, format, path, problems),
    template: compileTree(config.template, [...path, 'template'], problems),
    set: compileMembers(config.set, [...path, 'set'], problems),
    require: compileMembers(config.require, [...path, 'require'], problems),
  }
  checkWhole(recipe, context, path, problems)
  if (problems.list.length === before) checkFormat(recipe, path, problems)
  return recipe
}

interface Refusal {
  readonly key: KeyPath
  readonly why: string
}

function refusalOf(
  { template, set, require: required }: BodyConfig,
  context: BodyContext,
): Refusal | undefined {
  const { method, calls } = context
  const takes = calls.body?.kind ?? 'none'
  if (calls.reportOnly)
    return { key: [], why: 'is for bodies that are checked, and a report-only area checks nothing' }
  if (takes === 'streamed')
    return { key: [], why: 'is for bodies that are read, and `consumes` streams them' }
  if (isBodiless(method))
    return { key: [], why: `is for a ${method}, and the body of a ${method} has no meaning` }
  if (template !== undefined && set !== undefined)
    return { key: ['set'], why: 'stands beside `template`; expected one of the two' }
  const ofClients = set === undefined ? (required === undefined ? undefined : 'require') : 'set'
  if (takes === 'none' && ofClients !== undefined)
    return { key: [ofClients], why: 'is about the client’s body, and the operation takes none' }
  return takes === 'none' && template === undefined
    ? { key: [], why: 'has no `template`, and the operation takes no body of the client’s' }
    : undefined
}

function compileType(
  type: string | undefined,
  format: BodyRecipe['format'],
  path: KeyPath,
  problems: Problems,
): string {
  if (type === undefined) return MEDIA_TYPE_OF[format]
  if (parseContentType(type) === undefined || !isHeaderValue(type))
    problems.error([...path, 'type'], 'is no media type')
  return type
}

interface Counted {
  leaves: number
}

function compileTree(
  written: WrittenTree | undefined,
  path: KeyPath,
  problems: Problems,
): BodyTree | undefined {
  if (written === undefined) return undefined
  const counted = { leaves: 0 }
  const tree = treeOf(written, path, 1, counted, problems)
  if (counted.leaves > MOST_LEAVES)
    problems.error(path, `has ${counted.leaves} leaves; ${MOST_LEAVES} are allowed`)
  return tree
}

function treeOf(
  written: WrittenTree,
  path: KeyPath,
  level: number,
  counted: Counted,
  problems: Problems,
): BodyTree {
  if (level > MOST_LEVELS) {
    problems.error(path, `is nested deeper than ${MOST_LEVELS} levels`)
    return NULL
  }
  if (typeof written === 'object' && written !== null && 'list' in written) {
    const items = written.list.map((item, index) =>
      treeOf(item, [...path, index], level + 1, counted, problems),
    )
    return { kind: 'list', items }
  }
  if (typeof written === 'object' && written !== null && 'members' in written) {
    const members = written.members.map(
      ([name, value]) => [name, treeOf(value, [...path, name], level + 1, counted, problems)] as const,
    )
    return { kind: 'members', members }
  }
  counted.leaves++
  return leafOf(written, path, problems)
}

const NULL: Leaf = { kind: 'constant', value: null }

function leafOf(
  written: Exclude<WrittenTree, { list: unknown } | { members: unknown }>,
  path: KeyPath,
  problems: Problems,
): Leaf {
  if (written === null || typeof written === 'boolean') return { kind: 'constant', value: written }
  if (typeof written !== 'string') {
    const value = parseNumberLiteral(written.number) ?? Number(written.number)
    if (typeof value !== 'number' || Number.isFinite(value)) return { kind: 'constant', value }
    problems.error(path, 'is no number that can be sent')
    return NULL
  }
  const template = parseTemplate(written)
  if (typeof template === 'string') {
    problems.error(path, template)
    return NULL
  }
  const [first] = template
  if (template.some((part) => part.kind === 'placeholder')) return { kind: 'template', template }
  if (first?.kind !== 'text') return { kind: 'constant', value: '' }
  return { kind: 'constant', value: first.text, ...(first.isSecret && { isSecret: true }) }
}

function compileMembers(
  config: Readonly<Record<string, WrittenTree>> = {},
  path: KeyPath,
  problems: Problems,
): readonly PlacedLeaf[] {
  return Object.entries(config).flatMap(([key, written]) => {
    const at = [...path, key]
    const pointer = parseJsonPointer(key)
    if (!pointer.every(isComparable))
      problems.error(
        at,
        'has a name of nothing but white space, brackets, dots and the like, which services leave out',
      )
    if (isBranch(written) || written === null) {
      problems.error(at, 'expected a text, a number or a boolean')
      return []
    }
    return [{ pointer, leaf: leafOf(written, at, problems) }]
  })
}

const isBranch = (
  written: WrittenTree,
): written is Extract<WrittenTree, { list: unknown } | { members: unknown }> =>
  typeof written === 'object' && written !== null && ('list' in written || 'members' in written)

/** Parts of the client's body that go into XML or a form as they are: nobody may add what its schema does not name. */
function checkWhole(
  { format, template, set }: BodyRecipe,
  { calls: { body }, format: own }: BodyContext,
  path: KeyPath,
  problems: Problems,
): void {
  if (format === 'json') return
  const schema = body?.kind === 'read' ? body.schema : undefined
  const check = (pointer: JsonPointer, at: KeyPath): void => {
    if (isClosed(schemaAt(schema, pointer))) return
    problems.error(
      at,
      `puts ${pointer.length === 0 ? 'the client’s body' : `${pointerText(pointer)} of the client’s body`} as it is into ${format === 'xml' ? 'XML' : 'a form'}, and its schema lets a client add members`,
      'say `additionalProperties: false` in it, and in all objects below it, and give everything a `type`',
    )
  }
  const trees = [
    ...(template === undefined ? [] : [{ tree: template, at: [...path, 'template'] }]),
    ...set.map(({ pointer, leaf }) => ({ tree: leaf, at: [...path, 'set', pointerText(pointer)] })),
  ]
  for (const { tree, at } of trees)
    for (const part of templatesInTree(tree)) {
      const to = solePlaceholder(part)?.to
      if (to?.kind === 'body') check(to.pointer, at)
    }
  if (template === undefined && (set.length > 0 || format !== own)) check([], path)
}

const INDEX = /^(?:0|[1-9][0-9]*)$/

/** The schema of a part of a body; undefined: it says nothing of it. */
export function schemaAt(schema: BodySchema | undefined, pointer: JsonPointer): BodySchema | undefined {
  let here = schema
  for (const step of pointer)
    here = typesOf(here).includes('array') && INDEX.test(step) ? here?.items : memberSchema(here, step)
  return here
}

/** Whether a value that fits a schema holds no member that the schema does not name. */
export const isClosed = (schema: BodySchema | undefined): boolean => isClosedWithin(schema, new Set())

/** @param within schemas that are being looked at: one may contain itself, which opens nothing */
function isClosedWithin(schema: BodySchema | undefined, within: Set<BodySchema>): boolean {
  if (schema === undefined) return false
  if (within.has(schema)) return true
  within.add(schema)
  const types = typesOf(schema)
  if (types.length === 0) return schema.enum !== undefined || schema.const !== undefined
  if (types.includes('array') && !isClosedWithin(schema.items, within)) return false
  if (!types.includes('object')) return true
  return (
    schema.additionalProperties === false &&
    Object.values(schema.properties ?? {}).every((member) => isClosedWithin(member, within))
  )
}

/** Builds the body with a value for each placeholder: a recipe that no call could send is reported now. */
function checkFormat(recipe: BodyRecipe, path: KeyPath, problems: Problems): void {
  const { template, format } = recipe
  if (template === undefined) return
  const at = [...path, 'template']
  const isBody = template.kind === 'template' && solePlaceholder(template.template)?.to.kind === 'body'
  if (format === 'json' || isBody) return
  const samples = withLeaves(template, (leaf) => (leaf.kind === 'constant' ? leaf : SAMPLE))
  try {
    const client = { value: undefined, bytes: undefined, as: undefined, write: undefined }
    buildBody({ ...recipe, template: samples, set: [], require: [] }, {}, client, Infinity)
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    const why = (facts.detail ?? facts.say ?? code).replace(
      /^For the data service it becomes [^:]*: |\.$/g,
      '',
    )
    problems.error(at, `cannot be written as ${format === 'xml' ? 'XML' : 'a form'}: ${why}`)
  }
}

const SAMPLE: Leaf = { kind: 'constant', value: 'x' }

/** The templates of a recipe, and how they are used: for `checkTemplates`. @param at the section `upstream` */
export function usedInBody(
  { template, set, require: required }: BodyRecipe,
  at: KeyPath,
): readonly UsedTemplate[] {
  const of = (tree: BodyTree, key: KeyPath, alone: 'leaf' | 'certain'): UsedTemplate => ({
    at: [...at, 'body', ...key],
    isShared: false,
    used: templatesInTree(tree).flatMap((part) =>
      usedIn(part, alone === 'leaf' && solePlaceholder(part) === undefined ? 'text' : alone),
    ),
  })
  const placed = (key: string, leaves: readonly PlacedLeaf[]) =>
    leaves.map(({ pointer, leaf }) => of(leaf, [key, pointerText(pointer)], 'certain'))
  return [
    ...(template === undefined ? [] : [of(template, ['template'], 'leaf')]),
    ...placed('set', set),
    ...placed('require', required),
  ]
}

/** What a call's templates need of its body. Undefined: nothing. @param outside placeholders of all other templates */
export function bodyMaking(
  recipe: BodyRecipe | undefined,
  outside: readonly Placeholder[],
): BodyMaking | undefined {
  const pointers = new Set(outside.flatMap(({ to }) => (to.kind === 'body' ? [pointerText(to.pointer)] : [])))
  if (recipe === undefined && pointers.size === 0) return undefined
  return { pointers: [...pointers], recipe, fill: recipe === undefined ? () => NONE : compileFill(recipe) }
}

const NONE: PlaceholderValues = Object.freeze({})

function compileFill(recipe: BodyRecipe): BodyMaking['fill'] {
  const all = new Map(placeholdersOfBody(recipe).map((placeholder) => [placeholder.written, placeholder]))
  const certain = new Set(
    [...recipe.set, ...recipe.require]
      .flatMap(({ leaf }) => placeholdersInTree(leaf))
      .map(({ written }) => written),
  )
  const finders = [...all.values()]
    .filter(({ to }) => to.kind !== 'body')
    .map((placeholder) => ({ placeholder, find: findValue(placeholder.to) }))
  if (finders.length === 0) return () => NONE
  return (call: Call) => {
    const values = Object.create(null) as Record<string, JsonValue>
    for (const { placeholder, find } of finders) {
      const value = find(call)
      if (value !== undefined) values[placeholder.written] = value
      else if (certain.has(placeholder.written)) throw unsendable(placeholder, 'is missing')
    }
    return values
  }
}
