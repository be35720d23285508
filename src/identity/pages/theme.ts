import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type IdentityConfig, LOGO_TYPES } from '../schema.ts'
import { type Accent, accentsOf } from './accent.ts'

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
  /** Address of a page for people who need help. */
  readonly help: string | undefined
  readonly contact: string | undefined
  readonly footer: string | undefined
  /** IANA name. */
  readonly timeZone: string
  /** The path of an identity endpoint, below the issuer's own path. */
  readonly at: (path: string) => string
}

export const STYLESHEET_PATH = '/connect/assets/postern.css'
export const LOGO_PATH = '/connect/assets/logo'

const RULES = readFileSync(new URL('postern.css', import.meta.url), 'utf8')

const variables = ({ ground, onGround, text }: Accent): string =>
  `:root{--accent:${ground};--on-accent:${onGround};--accent-text:${text}}`

const schemeRules = (hex: string): string => {
  const { light, dark } = accentsOf(hex)
  return `${variables(light)}\n@media (prefers-color-scheme:dark){${variables(dark)}}\n`
}

export const asset = (bytes: Buffer, contentType: string, path: string): Asset => {
  const version = createHash('sha256').update(bytes).digest('base64url').slice(0, 12)
  return { bytes, contentType, href: `${path}?v=${version}` }
}

/** Reads the logo and the stylesheet. At load: what is wrong with the logo, `compileIdentity` has told. */
export function compileTheme(pages: IdentityConfig['pages'], issuerPath: string): Theme {
  const { accent, contact, footer, help, logo, name, timeZone } = pages
  const at = (path: string): string => `${issuerPath}${path}`
  const css = Buffer.from(RULES + schemeRules(accent))
  const picture = logo === undefined ? undefined : LOGO_TYPES.get(extname(logo).toLowerCase())
  return {
    name,
    at,
    help,
    contact,
    footer,
    timeZone,
    stylesheet: asset(css, 'text/css; charset=utf-8', at(STYLESHEET_PATH)),
    logo:
      logo === undefined || picture === undefined
        ? undefined
        : asset(readFileSync(logo), picture, at(LOGO_PATH)),
  }
}
