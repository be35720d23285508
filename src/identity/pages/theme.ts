import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { IdentityConfig } from '../config.ts'
import { accentsOf } from './accent.ts'
import { PICTURES } from './pictures.ts'

export interface Asset {
  readonly bytes: Buffer
  readonly contentType: string
  /** Path with the content's hash as its query: a new content has a new address. */
  readonly href: string
}

/** What all pages have in common, compiled once. */
export interface Theme {
  readonly name: string
  readonly logo: Asset | undefined
  readonly stylesheet: Asset
  /** The path of an identity endpoint, below the issuer's own path. */
  readonly at: (path: string) => string
}

export const STYLESHEET_PATH = '/connect/assets/postern.css'
export const LOGO_PATH = '/connect/assets/logo'

const RULES = readFileSync(new URL('postern.css', import.meta.url), 'utf8')

const schemeRules = (hex: string): string => {
  const { light, dark } = accentsOf(hex)
  return (
    `:root{--accent:${light.accent};--on-accent:${light.onAccent}}\n` +
    `@media (prefers-color-scheme:dark){:root{--accent:${dark.accent};--on-accent:${dark.onAccent}}}\n`
  )
}

const asset = (bytes: Buffer, contentType: string, path: string): Asset => {
  const version = createHash('sha256').update(bytes).digest('base64url').slice(0, 12)
  return { bytes, contentType, href: `${path}?v=${version}` }
}

/** Reads the logo and the stylesheet. At load: what is wrong with the logo, `compileIdentity` has told. */
export function compileTheme({ name, logo, accent }: IdentityConfig['pages'], issuerPath: string): Theme {
  const at = (path: string): string => `${issuerPath}${path}`
  const css = Buffer.from(RULES + schemeRules(accent))
  const picture = logo === undefined ? undefined : PICTURES.get(extname(logo).toLowerCase())
  return {
    name,
    at,
    stylesheet: asset(css, 'text/css; charset=utf-8', at(STYLESHEET_PATH)),
    logo:
      logo === undefined || picture === undefined
        ? undefined
        : asset(readFileSync(logo), picture, at(LOGO_PATH)),
  }
}
