/**
 * How an upstream's own XML is read and written (C7.7). Plain data: it is sent to the threads that convert large bodies.
 */
export interface PlainXmlRules {
  /** The name of the element that a JSON body becomes. Undefined: the one member of the body is the root. */
  readonly root: string | undefined
  /** Attributes and namespace declarations of that element, by their names. */
  readonly attributes: Readonly<Record<string, string>>
  /** Whether prefixes and namespace declarations are left out of JSON. */
  readonly stripNamespaces: boolean
  /** What is known of the elements and attributes, as a tree: below it, the root elements. */
  readonly paths: PathRule
}

/** What the configuration says of an element or attribute, and of what is below it. */
export interface PathRule {
  /** The type of its text in JSON. Undefined: text. */
  readonly type: 'number' | 'boolean' | undefined
  /** Whether it is an array in JSON, also when there is one, or none. */
  readonly isArray: boolean
  /** By names as in JSON: `Fund`, `@id`. */
  readonly children: ReadonlyMap<string, PathRule>
}

const NO_RULE: PathRule = { type: undefined, isArray: false, children: new Map() }

/** The rule of what is right below another one. */
export const ruleOf = ({ children }: PathRule, name: string): PathRule => children.get(name) ?? NO_RULE

/** Bounds on an XML document; what goes over one is refused. */
export interface PlainXmlLimits {
  /** Elements inside each other. */
  readonly depth: number
  /** Elements and attributes together. */
  readonly nodes: number
  /** Attributes of one element, namespace declarations included. */
  readonly attributes: number
  /** Character and entity references, counted by their `&`, those in CDATA and comments too. */
  readonly references: number
}

/** Bounds on a client's body, whose bytes are counted as it is read. */
export const BODY_LIMITS: PlainXmlLimits = {
  depth: 100,
  nodes: 50_000,
  attributes: 256,
  references: 50_000,
}
/** Bounds on an upstream's answer, whose bytes are counted as it is read. */
export const ANSWER_LIMITS: PlainXmlLimits = {
  depth: 200,
  nodes: 1_000_000,
  attributes: 256,
  references: 1_000_000,
}
