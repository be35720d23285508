import { readableOf } from '../../../src/base/http/body/pieces.ts'
import { afterEach, describe, expect, it } from 'vitest'
import type {
  ActionFacts,
  Backend,
  BackendAnswer,
  Call,
  CallBody,
} from '../../../src/base/contracts/calls/backend.ts'
import {
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '../../../src/base/http/body/json.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { makeCall } from '../calls.ts'

const MEMBER = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'
const STRANGER = '00000000-0000-4000-8000-000000000000'
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'content-type',
]

interface Outcome {
  readonly status: number
  readonly data: JsonValue
  readonly message: string
}

const facts = (area: string, action: string, level: ActionFacts['level']): ActionFacts => ({
  area,
  action,
  level,
  versioned: false,
  safe: true,
  produces: undefined,
})

/** Calls of the demo world (C10) as the gateway makes them. */
const CALLS = {
  fundList: {
    action: facts('fund-data', 'fund-list', 'business'),
    target: '/api/1.0/b/ACME/fund-data/fund-list',
  },
  fundCreate: {
    action: facts('fund-data', 'fund-create', 'business'),
    target: '/api/1.0/b/ACME/fund-data/fund-create',
    method: 'POST',
  },
  fundDetail: {
    action: facts('fund-data', 'fund-detail', 'fund'),
    target: '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail',
    fund: 'SUPER1',
  },
  memberList: {
    action: facts('member-data', 'member-list', 'fund'),
    target: '/api/1.0/f/ACME/SUPER1/member-data/member-list',
    fund: 'SUPER1',
  },
} as const

const memberDetail = (memberId = MEMBER) => ({
  action: facts('member-data', 'member-detail/{memberId:uuid}', 'fund'),
  target: `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${memberId}`,
  fund: 'SUPER1',
  params: { memberId },
})

/**
 * What every backend must do (C8.1), over the demo's data (C10).
 * @param open a backend over fresh demo data
 */
export function backendContract(name: string, open: () => Promise<Backend>): void {
  const opened: Backend[] = []
  afterEach(async () => {
    for (const backend of opened.splice(0)) await backend.close()
  })
  const begin = async (): Promise<Backend> => {
    const backend = await open()
    opened.push(backend)
    return backend
  }

  describe(`the ${name} backend keeps the contract`, () => {
    it('C10 lists the funds of the business that was judged, and no others', async () => {
      const { data } = await ask(await begin(), CALLS.fundList)
      expect(data).toMatchObject({ TotalCount: 2, FundSummaries: [{ Code: 'SUPER1' }, { Code: 'SUPER2' }] })
      const [fund] = (data as JsonObject)['FundSummaries'] as JsonObject[]
      expect(Object.keys(fund!)).toEqual(['Code', 'Name', 'Status', 'LegalEntityType', 'ABN', 'Tags'])
    })

    it('C10 reads a fund and lists its members', async () => {
      const backend = await begin()
      expect((await ask(backend, CALLS.fundDetail)).data).toMatchObject({ Code: 'SUPER1', Status: 'Active' })
      const { data } = await ask(backend, CALLS.memberList)
      expect(data).toMatchObject({ TotalCount: 3 })
      expect((data as JsonObject)['MemberSummaries']).toContainEqual({
        MemberId: MEMBER,
        DisplayName: 'Margaret Okafor',
        Status: 'Active',
        MemberNumber: 'HV-0001',
      })
    })

    it('C7.3 gives version 2 of a member one field more than version 1', async () => {
      const backend = await begin()
      const [one, two] = await Promise.all(
        [1, 2].map((version) => ask(backend, { ...memberDetail(), version })),
      )
      const added = Object.keys(two!.data as JsonObject).filter((key) => !(key in (one!.data as JsonObject)))
      expect(added).toHaveLength(1)
      expect(one!.data).toMatchObject({ MemberId: MEMBER, PersonalDetails: { FirstName: 'Margaret' } })
    })

    it('C8.4 says 404 for a record that is not there', async () => {
      expect((await ask(await begin(), memberDetail(STRANGER))).status).toBe(404)
    })

    it('C10 merges the given fields, nested ones too, and leaves the others', async () => {
      const backend = await begin()
      const change = { PersonalDetails: { FirstName: 'Maggie' } }
      const written = await ask(backend, { ...memberDetail(), method: 'POST' }, change)
      expect(written).toMatchObject({ status: 200, data: {} })
      const { data } = await ask(backend, memberDetail())
      expect(data).toMatchObject({
        MemberNumber: 'HV-0001',
        PersonalDetails: { FirstName: 'Maggie', LastName: 'Okafor' },
      })
    })

    it.each([
      ['an unknown field', { Nonsense: 1 }, 'Nonsense'],
      ['an ill-typed field', { PersonalDetails: { FirstName: 7 } }, 'FirstName'],
      ['a change of what identifies the record', { MemberId: STRANGER }, 'MemberId'],
    ])('C10 refuses %s with 400, naming it, and changes nothing', async (_case, change, field) => {
      const backend = await begin()
      const before = await ask(backend, memberDetail())
      const refused = await ask(backend, { ...memberDetail(), method: 'POST' }, change)
      expect(refused.status).toBe(400)
      expect(refused.message).toContain(field)
      expect(await ask(backend, memberDetail())).toEqual(before)
    })

    it('C10 creates a fund, which is then listed; a taken Code and a missing Name are 400', async () => {
      const backend = await begin()
      expect((await ask(backend, CALLS.fundCreate, { Code: 'NEW1', Name: 'New' })).status).toBe(200)
      expect((await ask(backend, CALLS.fundList)).data).toMatchObject({ TotalCount: 3 })
      const taken = await ask(backend, CALLS.fundCreate, { Code: 'NEW1', Name: 'Newer' })
      expect(taken).toMatchObject({ status: 400, message: expect.stringContaining('Code') })
      const nameless = await ask(backend, CALLS.fundCreate, { Code: 'NEW2' })
      expect(nameless).toMatchObject({ status: 400, message: expect.stringContaining('Name') })
    })

    it('T4.1 takes __proto__ for data: it is an unknown field', async () => {
      const refused = await ask(
        await begin(),
        { ...memberDetail(), method: 'POST' },
        parsed('{"__proto__":{"a":1}}'),
      )
      expect(refused.status).toBe(400)
      expect(({} as Record<string, unknown>)['a']).toBeUndefined()
    })

    it('C8.1 answers HEAD wherever it answers GET, with the same status', async () => {
      const backend = await begin()
      expect((await ask(backend, { ...CALLS.fundList, method: 'HEAD' })).status).toBe(200)
    })

    it('C8.3 hands on no header of the connection and none that describes the body', async () => {
      const { headers } = await (await begin()).answer(makeCall(CALLS.fundList))
      for (const header of Object.keys(headers)) {
        expect(header).toBe(header.toLowerCase())
        expect(HOP_BY_HOP).not.toContain(header)
      }
    })

    it('C8.1 keeps fifty parallel calls apart', async () => {
      const backend = await begin()
      const calls = Array.from({ length: 50 }, (_, index) =>
        index % 2 ? CALLS.fundDetail : CALLS.memberList,
      )
      const outcomes = await Promise.all(calls.map((call) => ask(backend, call)))
      for (const [index, { data }] of outcomes.entries())
        expect(Object.keys(data as JsonObject)).toContain(index % 2 ? 'Trustee' : 'MemberSummaries')
    })
  })
}

const parsed = (text: string): JsonValue => parseJson(Buffer.from(text))

/** Asks in the backend's own format, and makes one shape of an answer, an answer with errors, and a fault. */
async function ask(
  backend: Backend,
  call: Parameters<typeof makeCall>[0],
  value?: JsonValue | Record<string, unknown>,
): Promise<Outcome> {
  const made: Call = makeCall({
    ...call,
    ...(value !== undefined && { body: bodyFor(backend, value as JsonValue) }),
  })
  try {
    return await outcomeOf(await backend.answer(made))
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Fault)
    const fault = thrown as Fault
    return { status: fault.status, data: null, message: fault.publicText }
  }
}

function bodyFor({ format }: Backend, value: JsonValue): CallBody {
  return format === 'value'
    ? { kind: 'value', value }
    : { kind: 'bytes', bytes: Buffer.from(stringifyJson(value)), contentType: 'application/json' }
}

async function outcomeOf({ status, body }: BackendAnswer): Promise<Outcome> {
  if (body.kind === 'errors')
    return { status, data: null, message: body.errors.map(({ message }) => message).join(' ') }
  if (body.kind === 'none') return { status, data: null, message: '' }
  if (body.kind === 'value') return { status, data: body.value, message: '' }
  const bytes = body.kind === 'bytes' ? body.bytes : Buffer.concat(await readableOf(body.pieces).toArray())
  return { status, data: parseJson(bytes), message: '' }
}
