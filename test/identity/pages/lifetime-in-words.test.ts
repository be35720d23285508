import { describe, expect, it } from 'vitest'
import { TEXTS } from '../../../src/identity/pages/texts.ts'

const told = (seconds: number): string | undefined =>
  /has this access for (.*) after you allow it\.$/.exec(
    TEXTS.consent.onceText('Ledgerline', seconds * 1000),
  )?.[1]

describe('C6.2.2 how long access lasts that is not lasting', () => {
  it('C6.2.2 is told in the largest unit in which it is whole, and from two minutes on in minutes at least', () => {
    expect([1, 45, 60, 90, 900, 901].map(told)).toEqual([
      ...['one second', '45 seconds', 'one minute', '90 seconds'],
      ...['15 minutes', '15 minutes'],
    ])
    expect([3600, 5400, 7200, 86_400].map(told)).toEqual(['one hour', '90 minutes', '2 hours', 'one day'])
  })
})
