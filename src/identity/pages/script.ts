import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, verbatim } from './layout.ts'

/** A script of ours for a page, and the expression by which the page's policy admits it and no other (CSP 3 §2.3.1). */
export interface OwnScript {
  readonly element: Html
  readonly source: string
}

function readScript(name: string): OwnScript {
  const text = readFileSync(new URL(name, import.meta.url), 'utf8')
  return {
    element: verbatim(`<script>${text}</script>`),
    source: `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  }
}

/** Lets people see the password that they type. */
export const SHOW_PASSWORD = readScript('show-password.js')
