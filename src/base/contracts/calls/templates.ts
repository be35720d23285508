/**
 * Templates of what an upstream is sent (C8.7), parsed. All of it is plain data: the threads that build large bodies are
 * given it.
 */
import type { JsonPointer, JsonValue, ScalarValue } from '../../http/body/json.ts'

/** Replaces, in explanations, a value that is told to nobody (C14.1). */
export const MASK = '***'

/** The value that a placeholder names. */
export type TemplateReference =
  /** A built-in name, or a path parameter. */
  | { readonly kind: 'name'; readonly name: string }
  /** `{path...}`: all segments of a rest parameter (C3.3). */
  | { readonly kind: 'segments'; readonly name: string }
  /** `{business.KEY}`: a value of the business. */
  | { readonly kind: 'value'; readonly name: string }
  /** `{query/NAME}`: a declared parameter of the query (C4.11). Without a name it is none: checks report it. */
  | { readonly kind: 'query'; readonly name: string }
  /** `{body}`, `{body/Address/City}`: the client's body, or a part of it. */
  | { readonly kind: 'body'; readonly pointer: JsonPointer }

export interface Placeholder {
  readonly kind: 'placeholder'
  /** As it is written, without its braces. */
  readonly written: string
  readonly to: TemplateReference
  /** The marks between which it is quoted, nested ones too: they are before it and behind it. None: it is not quoted. */
  readonly quotes: readonly string[]
}

export interface TemplateText {
  readonly kind: 'text'
  readonly text: string
  /** Whether it came from a file or the environment: it is told to nobody. */
  readonly isSecret?: true
}

export type TemplatePart = TemplateText | Placeholder

/** A parsed text: no two parts of kind text are side by side. */
export type Template = readonly TemplatePart[]

/** A leaf of a body's template: what the configuration says, or a text with placeholders. */
export type Leaf = ConstantLeaf | TemplateLeaf

interface ConstantLeaf {
  readonly kind: 'constant'
  readonly value: ScalarValue | null
  /** As that of a text. */
  readonly isSecret?: true
}

interface TemplateLeaf {
  readonly kind: 'template'
  readonly template: Template
}

/** The tree of `upstream.body.template`: YAML, whose keys are plain. */
export type BodyTree =
  | Leaf
  | { readonly kind: 'list'; readonly items: readonly BodyTree[] }
  | { readonly kind: 'members'; readonly members: readonly (readonly [name: string, value: BodyTree])[] }

/** A member of `set` or `require`. */
export interface PlacedLeaf {
  readonly pointer: JsonPointer
  readonly leaf: Leaf
}

/** How the body of an operation is made. `template`, or `set`, or neither. */
export interface BodyRecipe {
  readonly format: 'json' | 'xml' | 'form'
  /** Its `Content-Type`. */
  readonly type: string
  readonly template: BodyTree | undefined
  readonly set: readonly PlacedLeaf[]
  readonly require: readonly PlacedLeaf[]
  /** Names that a form that is sent on byte for byte may not hide either; undefined: none but those of `require`. */
  readonly kept?: readonly string[]
}

/** By placeholder, as it is written. A value that a call does not have is not there. */
export type PlaceholderValues = Readonly<Record<string, JsonValue>>
