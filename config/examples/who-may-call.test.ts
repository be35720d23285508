/**
 * Tests of your own for who may call what, without a service: they read the configuration, and explain calls by it.
 * Copy the file, put your configuration, clients and users in, and run it in your CI: `node --test who-may-call.test.ts`.
 * config/explain.md has the rest.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Explainer, openExplainer } from 'postern/explain'

const CONFIGURATION = fileURLToPath(new URL('../demo.yaml', import.meta.url))
const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'

const alice = { client: 'acme-books', user: 'alice', target: 'b/ACME' }
const bob = { client: 'acme-books', user: 'bob', target: 'b/GLOBEX' }

let explainer: Explainer

before(async () => {
  explainer = await openExplainer(CONFIGURATION)
})
after(() => explainer.close())

await test('alice sees the funds of ACME', async () => {
  const { outcome } = await explainer.explain({ path: FUNDS, ...alice })
  assert.equal(outcome, 'let in')
})

await test('bob does not', async () => {
  const { outcome, refusal, checks } = await explainer.explain({ path: FUNDS, ...bob })
  assert.equal(outcome, 'refused')
  assert.equal(refusal?.reason, 'unknown_place')
  const failed = checks.find(({ verdict }) => verdict === 'failed')
  assert.match(failed?.words ?? '', /another target/)
})

await test('bob changes nothing: he would need another scope value', async () => {
  const { refusal, checks } = await explainer.explain({
    ...bob,
    method: 'POST',
    path: '/api/1.0/f/GLOBEX/GROWTH/fund-data/fund-detail',
    headers: { 'Content-Type': 'application/json' },
    body: '{"Name":"Growth II"}',
  })
  assert.equal(refusal?.reason, 'insufficient_scope')
  const failed = checks.find(({ verdict }) => verdict === 'failed')
  assert.deepEqual(failed?.facts['missing'], ['fund.details.maintain'])
})
