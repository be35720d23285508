import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type IdentityConfig, LOGO_TYPES } from '../dependencies/schema.ts'

export interface Asset {
  readonly bytes: Buffer
  readonly contentType: string
  /** Path with the content's hash as its query: a new content has a new address. */
  readonly href: string
}

export interface Theme {
  readonly name: string
  readonly logo: Asset | undefined
  readonly stylesheet: Asset
  readonly help: string | undefined
  readonly contact: string | undefined
  readonly footer: string | undefined
  /** For who has forgotten the password. */
  readonly forgotten: string | undefined
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

/** `compileIdentity` has checked that the logo exists. */
export function compileTheme(pages: IdentityConfig['pages'], issuerPath: string): Theme {
  const { accent, contact, footer, forgotten, help, logo, name, timeZone } = pages
  const at = (path: string): string => `${issuerPath}${path}`
  const css = Buffer.from(RULES + schemeRules(accent))
  const picture = logo === undefined ? undefined : LOGO_TYPES.get(extname(logo).toLowerCase())
  return {
    name,
    at,
    help,
    contact,
    footer,
    forgotten,
    timeZone,
    stylesheet: asset(css, 'text/css; charset=utf-8', at(STYLESHEET_PATH)),
    logo:
      logo === undefined || picture === undefined
        ? undefined
        : asset(readFileSync(logo), picture, at(LOGO_PATH)),
  }
}

/** Red, green, blue: 0 to 255. */
type Colour = readonly [number, number, number]

const WHITE: Colour = [255, 255, 255]

const BLACK: Colour = [0, 0, 0]

/** The surfaces of postern.css behind accent-coloured text, the least favourable of each scheme. */
const LIGHT_SURFACE: Colour = [0xf4, 0xf5, 0xf8]

const DARK_SURFACE: Colour = [0x1e, 0x22, 0x2b]

/** WCAG 2.2 §1.4.3, AA for text, with a little to spare for rounding. */
const LEGIBLE = 4.6

const parse = (hex: string): Colour => {
  const part = (at: number): number => Number.parseInt(hex.slice(at, at + 2), 16)
  return [part(1), part(3), part(5)]
}

const write = (colour: Colour): string =>
  `#${colour.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`

/** WCAG relative luminance. */
function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0)
}

function contrast(a: Colour, b: Colour): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x)
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05)
}

const mix = ([r, g, b]: Colour, [x, y, z]: Colour, share: number): Colour => [
  r + (x - r) * share,
  g + (y - g) * share,
  b + (z - b) * share,
]

/** The colour moved towards another one, only as far as it has to be to read on a surface. */
function legible(colour: Colour, surface: Colour, towards: Colour): Colour {
  for (let share = 0; share < 1; share += 0.05) {
    const moved = mix(colour, towards, share)
    if (contrast(moved, surface) >= LEGIBLE) return moved
  }
  return towards
}

interface Accent {
  /** The ground of buttons: the configured colour itself. */
  readonly ground: string
  /** Black or white, whichever reads better on the ground. One of them always does. */
  readonly onGround: string
  /** The colour as text, lines and signs on the scheme's surfaces, made darker or lighter until it reads. */
  readonly text: string
}

function accentOn(colour: Colour, surface: Colour, towards: Colour): Accent {
  const onGround = contrast(WHITE, colour) >= contrast(BLACK, colour) ? WHITE : BLACK
  return {
    ground: write(colour),
    onGround: write(onGround),
    text: write(legible(colour, surface, towards)),
  }
}

/** A deployment's accent colour, adapted to each colour scheme so that text stays legible (WCAG 2.2 AA). */
export const accentsOf = (hex: string): { readonly light: Accent; readonly dark: Accent } => ({
  light: accentOn(parse(hex), LIGHT_SURFACE, BLACK),
  dark: accentOn(parse(hex), DARK_SURFACE, WHITE),
})
