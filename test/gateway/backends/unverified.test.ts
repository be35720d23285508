import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const told = async (tls: string): Promise<string> => {
  const file = configFiles({
    'a.yaml': `backends: { funds: { kind: http, target: 'https://funds.internal', tls: { ${tls} } } }`,
  })
  return reportText(await SETTINGS.check(file('a.yaml'), {}))
}

describe('T7 verification of upstreams', () => {
  it('T7 is turned off by one word alone, and that is told at every start', async () => {
    expect(await told('verify: off-insecure')).toMatch(
      /backends\.funds\.tls\.verify {2}is off: anyone on the way .*\(warning\)/,
    )
    expect(await told('verify: always')).not.toContain('tls')
  })

  it.each(['verify: false', 'verify: off', 'verify: "no"', 'rejectUnauthorized: false', 'insecure: true'])(
    'T7 is not turned off by %s: the configuration is refused',
    async (tls) => {
      expect(await told(tls)).toMatch(/backends\.funds\.tls\.\w+ {2}/)
      expect(await told(tls)).not.toMatch(/backends\.funds\.tls.*\(warning\)/)
    },
  )
})
