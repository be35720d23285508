import { describe, expect, it } from 'vitest'
import { buildBody } from '../../../src/gateway/backends/templates/body.ts'
import { setMembers } from '../../../src/gateway/backends/templates/members.ts'
import { newObject } from '../../../src/base/http/body/json.ts'
import { differences } from '../../support/random-bodies.ts'

describe('T4.9 random values in a body are read back equal by readers that are not ours', () => {
  it.each(['json', 'form', 'xml'] as const)('C8.7 %s', (format) => {
    expect(differences(format, 2000, 20_261_126)).toEqual([])
  })
})

describe('C8.7 what is kept out, required and set', () => {
  it('T4.8 reads the names of an object once', () => {
    let read = 0
    const members = Object.assign(newObject(), { realm: 'a', note: 1 })
    const value = new Proxy(members, { ownKeys: (target) => ((read += 1), Reflect.ownKeys(target)) })
    const placed = (name: string) => ({
      pointer: [name],
      leaf: { kind: 'constant' as const, value: 'a' },
    })
    const recipe = {
      format: 'json' as const,
      type: 'application/json',
      template: undefined,
      set: [placed('company'), placed('owner')],
      require: [placed('realm')],
    }
    const kept = { names: ['tenant', 'fund'], isXml: false, part: [], isDocument: false }
    const client = { value, bytes: undefined, as: 'json' as const, kept, write: () => Buffer.from('written') }
    expect(String(buildBody(recipe, {}, client, 1000))).toBe('written')
    expect({ ...members }).toEqual({ realm: 'a', note: 1, company: 'a', owner: 'a' })
    expect(read).toBe(1)
  })

  it('T4.8 refuses a body with over 100 names that can be told slowly alone', () => {
    const bodyOf = (count: number) =>
      Object.assign(
        newObject(),
        Object.fromEntries(Array.from({ length: count }, (_, at) => [`%EF%BD%83ompany[${at}]`, 'a'])),
      )
    const members = [{ pointer: ['company'], value: 'ours' }]
    expect(setMembers(bodyOf(100), members, false)).toEqual({ company: 'ours' })
    expect(() => setMembers(bodyOf(101), members, false)).toThrow(
      expect.objectContaining({ code: 'unsendable_argument' }),
    )
    const plain = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`Company[${at}]`, 'a']))
    expect(setMembers(Object.assign(newObject(), plain), members, false)).toEqual({ company: 'ours' })
  })
})
