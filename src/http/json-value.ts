/**
 * A value that JSON can say. Objects have a null prototype, so `__proto__` is plain data. A number whose literal
 * JavaScript would rewrite (`1e5`, `1.0`, `-0`, twenty digits) is kept as JSON.rawJSON, which JSON.stringify
 * writes back as it was (C7.5 "a number's literal survives").
 */
export type JsonValue = null | boolean | number | string | RawNumber | JsonValue[] | JsonObject

export interface JsonObject {
  [key: string]: JsonValue
}

/** What JSON.rawJSON makes. Told apart by JSON.isRawJSON alone. */
export interface RawNumber {
  readonly rawJSON: string
}

declare global {
  // ES2026 (JSON.parse source text access), in every Node that runs this; TypeScript's own library lacks it still.
  interface JSON {
    /** A value that JSON.stringify writes as this literal. Throws SyntaxError unless it is a JSON scalar. */
    rawJSON(literal: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}
