import { describe, expect, it } from 'vitest'
import { isolated, isShortened, preparedTexts } from '../../../src/identity/pages/texts.ts'

const texts = preparedTexts({
  deep: { hello: (name: string, count: number) => `Hello ${name}, ${count} times` },
})

describe('C6.2.3 names in texts', () => {
  it('stay as they are where they are written from left to right', () => {
    expect(texts.deep.hello('Zoë & Søn', 2)).toBe('Hello Zoë & Søn, 2 times')
  })

  it('are isolated where they are written from right to left, or try to turn the text around', () => {
    expect(texts.deep.hello('שלום', 2)).toBe('Hello \u2068שלום\u2069, 2 times')
    expect(texts.deep.hello('evil\u202E\u2069moc', 2)).toBe('Hello \u2068evilmoc\u2069, 2 times')
    expect(isolated('\u2066')).toBe('\u2068\u2069')
  })

  it('are shortened between characters as people see them, and the page knows it', () => {
    const family = '👨‍👩‍👧‍👦'
    expect(texts.deep.hello(family.repeat(60), 1)).toBe(`Hello ${family.repeat(47)}…, 1 times`)
    expect([isShortened('x'.repeat(48)), isShortened('x'.repeat(49))]).toEqual([false, true])
    expect(isShortened(family.repeat(48))).toBe(false)
  })
})
