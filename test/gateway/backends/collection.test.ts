import { describe, expect, it } from 'vitest'
import { MemoryCollection } from '../../../src/gateway/backends/memory/memory.ts'

const ID = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'

const members = (format?: 'uuid') =>
  new MemoryCollection({
    ...{ per: 'business', key: 'Id', records: { ACME: [{ Id: ID, Name: 'Ada' }] } },
    fields: { Id: { type: 'string', ...(format && { format }) }, Name: { type: 'string' } },
  })

describe('a collection whose key is a UUID', () => {
  it('C10 finds a record by its key in capitals, and keeps the key as it was written', () => {
    const found = members('uuid')
    expect(found.get('ACME', ID.toUpperCase())).toEqual({ Id: ID, Name: 'Ada' })
    found.merge('ACME', ID.toUpperCase(), { Id: ID.toUpperCase(), Name: 'Bea' })
    expect(found.list('ACME')).toEqual([{ Id: ID, Name: 'Bea' }])
  })

  it('C10 takes the same key in capitals for one that is taken', () => {
    const create = () => members('uuid').create('ACME', { Id: ID.toUpperCase() }, {}, String)
    expect(create).toThrow('Id is taken.')
  })

  it('C10 lets no change give a record another key', () => {
    const other = { Id: ID.replace('7', '8') }
    expect(() => members('uuid').merge('ACME', ID, other)).toThrow('Id cannot be changed.')
  })

  it('C10 tells capitals apart in any other key', () => {
    expect(() => members().get('ACME', ID.toUpperCase())).toThrow('upstream_not_found')
  })
})
