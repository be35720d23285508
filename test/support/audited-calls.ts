import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { auditRecords, type WrittenRecord } from './audit-files.ts'
import type { StartedPostern } from './start-postern.ts'
import { withStream } from './streaming.ts'

export const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
export const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
export const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
export const JSON_BODY = { 'Content-Type': 'application/json' }
export const NEW_FUND = '{"Code":"NEW1","Name":"A new fund"}'

const anybody = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }

/** An action of its own at ACME, `/api/1.0/b/ACME/fund-data/{action}`. */
export const actionOf = (action: string, methods: object): Configuration['actions'][number] => ({
  level: 'business',
  area: 'fund-data',
  action,
  methods: Object.fromEntries(
    Object.entries(methods).map(([method, operation]) => [method, { ...anybody, ...operation }]),
  ),
})

/** The configuration upstream.yaml over a `stream` backend, with more actions. */
export const withActions =
  (...actions: readonly Configuration['actions'][number][]) =>
  (loaded: Configuration): Configuration => {
    const streaming = withStream(loaded)
    return { ...streaming, actions: [...streaming.actions, ...actions] }
  }

/** What the trail has of one call, in its order. */
export const recordsOfCall = (
  service: Pick<StartedPostern, 'data' | 'world'>,
  { headers }: { readonly headers: Readonly<Record<string, unknown>> },
): readonly WrittenRecord[] =>
  auditRecords(service).filter(({ requestId }) => requestId === headers['x-request-id'])

export const eventsOf = (records: readonly WrittenRecord[]): readonly string[] =>
  records.map(({ event }) => event)
