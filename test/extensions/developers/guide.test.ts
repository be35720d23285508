import { describe, expect, it } from 'vitest'
import { FAULTS } from '../../../src/base/kernel/fault-table.ts'
import { guidePage, readMends, type GuideValues } from '../../../src/extensions/developers/guide.ts'

const bodyOf = async (values: GuideValues): Promise<string> =>
  String((await guidePage('scopes', () => values).content()).body)

describe('C11.4 guides', () => {
  it('C11.4 are refused where they name a value that their page does not give, or a block within a line', async () => {
    const given = { example: 'a', data: 'b', person: 'c' }
    await expect(bodyOf({ example: 'a', data: 'b' })).rejects.toThrow('{{person}}')
    await expect(bodyOf({ ...given, example: { kind: 'JSON', text: '{}' } })).rejects.toThrow('{{example}}')
    const [all, some] = await Promise.all([bodyOf(given), bodyOf({ ...given, data: undefined })])
    expect([all, some].map((body) => body.includes('Data of a business'))).toEqual([true, false])
  })

  it('C11.4 show a value as it is, whatever marks of Markdown it has', async () => {
    const body = await bodyOf({ example: 'a`b **c** {{data}}', data: '`d`', person: '' })
    expect(body).toContain('<code>a`b **c** {{data}}</code>')
    expect(body).toContain('<p>`d`</p>')
  })

  it('C11.4 C2 say what to do about each fault that a client can meet, once, where it is met', () => {
    const { words, codes, ...lists } = Object.fromEntries(
      [...readMends()].map(([heading, list]) => [heading, [...list.keys()]]),
    )
    expect([words, codes].map((names) => names?.length)).not.toContain(0)
    // The table has the faults of calls first, then those of identity; among those, the ones of the browser together.
    const all = Object.keys(FAULTS).filter((code) => code !== 'client_gone')
    const [oauth, browser, pushed] = [
      'oauth_bad_request',
      'authorize_bad_client',
      'pushed_request_too_large',
    ].map((code) => all.indexOf(code)) as [number, number, number]
    const both = [
      'invalid_dpop_proof',
      'proof_replayed',
      'use_dpop_nonce',
      'address_rate_limited',
      'overloaded',
    ].concat('body_too_large', 'audit_unavailable', 'internal')
    const sorted = (names: readonly string[]): readonly string[] => [...names].sort()
    expect(
      Object.fromEntries(Object.entries(lists).map(([heading, names]) => [heading, sorted(names)])),
    ).toEqual({
      api: sorted(all.slice(0, oauth).filter((code) => !both.includes(code))),
      'api and identity': sorted(both),
      identity: sorted([...all.slice(oauth, browser), ...all.slice(pushed)]),
      browser: sorted(all.slice(browser, pushed)),
    })
  })
})
