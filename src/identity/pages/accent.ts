/** The accent colour of a deployment, in both colour schemes (C6.2.3). */

/** Red, green, blue: 0 to 255. */
type Colour = readonly [number, number, number]

const WHITE: Colour = [255, 255, 255]
const BLACK: Colour = [0, 0, 0]
/** The surfaces of postern.css that accent-coloured text stands on, the least favourable of each scheme. */
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

export interface Accent {
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

/** What a deployment's accent colour becomes in each colour scheme, so that text stays legible (WCAG 2.2 AA). */
export const accentsOf = (hex: string): { readonly light: Accent; readonly dark: Accent } => ({
  light: accentOn(parse(hex), LIGHT_SURFACE, BLACK),
  dark: accentOn(parse(hex), DARK_SURFACE, WHITE),
})
