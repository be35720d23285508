import { describe, expect, it } from 'vitest'
import { Report } from '../../../src/config/report.ts'
import { compileScopes, type ScopesConfig } from '../../../src/scopes/config.ts'

function compile(config: ScopesConfig) {
  const report = new Report()
  const catalogue = compileScopes(config, report)
  return {
    catalogue,
    problems: report.problems.map(({ path, message, hint }) => [path.join('.'), message, hint]),
  }
}

const scope = (...implies: string[]) => ({ description: 'A scope', implies })

describe('the catalogue of scope values', () => {
  it('C5.1 holds the configured values after the built-in ones, and what they imply', () => {
    const { catalogue, problems } = compile({ 'fund.read': scope(), 'fund.maintain': scope('fund.read') })
    expect(problems).toEqual([])
    expect(catalogue.values.slice(-2)).toEqual(['fund.read', 'fund.maintain'])
    expect([...catalogue.close(['fund.maintain'])]).toEqual(['fund.maintain', 'fund.read'])
  })

  it('C5.1 refuses an implied value that is not in the catalogue, and suggests one', () => {
    const { problems } = compile({ 'fund.read': scope(), 'fund.maintain': scope('fund.raed') })
    expect(problems).toEqual([
      [
        'scopes.fund.maintain.implies.0',
        'names no scope of the catalogue: "fund.raed"',
        'did you mean "fund.read"?',
      ],
    ])
  })

  it.each(['openid', 'offline_access', 'target', 'target:b', 'target:x/y'])(
    'C5.1 refuses the name %s',
    (name) => {
      expect(compile({ [name]: scope() }).problems).toHaveLength(1)
    },
  )

  it('C5.1 lets no data scope imply an identity scope', () => {
    expect(compile({ a: scope('openid') }).problems).toHaveLength(1)
  })
})
