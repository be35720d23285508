import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { accentsOf } from '../../../src/identity/pages/theme.ts'

/** WCAG 2.2, written down a second time. */
function luminance(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}
const contrast = (a: string, b: string): number => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (high! + 0.05) / (low! + 0.05)
}

describe('C6.2.3 the accent colour', () => {
  it('C6.2.3 whatever is configured, text in it and on it is legible in both schemes (WCAG AA)', () => {
    const colours = fc
      .integer({ min: 0, max: 0xffffff })
      .map((value) => `#${value.toString(16).padStart(6, '0')}`)
    fc.assert(
      fc.property(colours, (hex) => {
        const { light, dark } = accentsOf(hex)
        for (const surface of ['#f4f5f8', '#ffffff'])
          expect(contrast(light.text, surface)).toBeGreaterThan(4.5)
        for (const surface of ['#0f1117', '#181b23', '#1e222b'])
          expect(contrast(dark.text, surface)).toBeGreaterThan(4.5)
        for (const { ground, onGround } of [light, dark])
          expect(contrast(ground, onGround)).toBeGreaterThan(4.5)
      }),
    )
  })

  it('C6.2.3 a colour that is legible already stays as it is', () => {
    expect(accentsOf('#3a5bd0').light).toEqual({
      ground: '#3a5bd0',
      onGround: '#ffffff',
      text: '#3a5bd0',
    })
  })

  it('C6.2.3 buttons keep the colour that was configured, with text that reads on it', () => {
    const { light, dark } = accentsOf('#ffcc00')
    expect([light.ground, light.onGround]).toEqual(['#ffcc00', '#000000'])
    expect([dark.ground, dark.onGround]).toEqual(['#ffcc00', '#000000'])
  })
})
