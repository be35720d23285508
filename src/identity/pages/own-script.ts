import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, verbatim } from './layout.ts'

/** A script of ours for a page, and the expression by which the page's policy admits it and no other (CSP 3 §2.3.1). */
export interface OwnScript {
  readonly element: Html
  readonly source: string
}

/** @param file next to the module that shows it */
export function readScript(file: URL): OwnScript {
  const text = readFileSync(file, 'utf8')
  return {
    element: verbatim(`<script>${text}</script>`),
    source: `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  }
}
