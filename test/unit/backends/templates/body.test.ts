import { describe, expect, it } from 'vitest'
import { differences } from '../../../support/random-bodies.ts'

describe('T4.9 random values in a body are read back equal by readers that are not ours', () => {
  it.each(['json', 'form', 'xml'] as const)('C8.7 %s', (format) => {
    expect(differences(format, 2000, 20_261_126)).toEqual([])
  })
})
