import { describe, expect, it } from 'vitest'
import { MemoryBackend } from '../../../src/gateway/backends/memory/memory.ts'
import { parseMemoryFile } from '../../../src/gateway/backends/memory/file.ts'
import { makeCall } from '../../support/calls.ts'

const FILE = {
  collections: {
    things: {
      per: 'business',
      key: 'Id',
      fields: { Id: { type: 'string' }, Size: { type: 'number' } },
      records: { ACME: [{ Id: 'a', Size: 1 }] },
    },
  },
  actions: { 'store/things': { GET: { do: 'list', collection: 'things', as: 'Things' } } },
}
const parse = (value: unknown) => parseMemoryFile(Buffer.from(JSON.stringify(value)))
const action = {
  area: 'store',
  action: 'things',
  level: 'business',
  versioned: false,
  safe: true,
  produces: undefined,
} as const

describe('a data file of the memory backend', () => {
  it('C8.1 may be of any world, not only the demo’s', async () => {
    const backend = new MemoryBackend('any', parse(FILE))
    const { body } = await backend.answer(makeCall({ action }))
    expect(body).toEqual({ kind: 'value', value: { Things: [{ Id: 'a', Size: 1 }] } })
  })

  it('keeps a number’s literal (C7.5)', async () => {
    const text = JSON.stringify(FILE).replace('"Size":1', '"Size":1.50')
    const backend = new MemoryBackend('any', parseMemoryFile(Buffer.from(text)))
    const { body } = await backend.answer(makeCall({ action }))
    expect(JSON.stringify(body)).toContain('"Size":1.50')
  })

  it('gives a business without records an empty list', async () => {
    const { body } = await new MemoryBackend('any', parse(FILE)).answer(
      makeCall({ action, business: 'OTHER' }),
    )
    expect(body).toEqual({ kind: 'value', value: { Things: [] } })
  })

  it.each([
    ['an unknown key', { ...FILE, extra: 1 }, /extra/],
    [
      'a rule without its collection',
      { ...FILE, actions: { x: { GET: { do: 'list', as: 'X', collection: 'no' } } } },
      /no collection/,
    ],
    [
      'a list without a name',
      { ...FILE, actions: { x: { GET: { do: 'list', collection: 'things' } } } },
      /x\.GET\.as/,
    ],
    ['an unknown verb', { ...FILE, actions: { x: { GET: { do: 'drop', collection: 'things' } } } }, /do/],
  ])('is refused with %s, which the message names', (_case, file, message) => {
    expect(() => parse(file)).toThrow(message)
  })

  it('tells the registry of a fund that was created (C10)', async () => {
    const told: string[] = []
    const rule = { do: 'create', collection: 'things', required: ['Id'], opensFund: true }
    const file = parse({ ...FILE, actions: { 'store/things': { POST: rule } } })
    const backend = new MemoryBackend('any', file, {
      addFund: (business, fund) => Promise.resolve(void told.push(`${business}/${fund}`)),
    })
    const value = { Id: 'NEW' }
    await backend.answer(makeCall({ action, method: 'POST', body: { kind: 'value', value } }))
    expect(told).toEqual(['ACME/NEW'])
  })
})
