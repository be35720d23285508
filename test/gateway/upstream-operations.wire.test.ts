import { expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf } from '../support/changed-funds.ts'
import { bearer, send } from '../support/requests.ts'
import { postern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const NEW_FUND = '{"Code":"NEW1","Name":"New"}'
const JSON_BODY = { 'Content-Type': 'application/json' }

type Upstream = NonNullable<Configuration['actions'][number]['methods']['GET']>['upstream']

/** Gives the GET of `fund-list` an `upstream` section. */
const withUpstream =
  (upstream: NonNullable<Upstream>, others: Configuration['backends'] = {}) =>
  (loaded: Configuration): Configuration => ({
    ...loaded,
    backends: { ...loaded.backends, ...others },
    actions: loaded.actions.map((action) =>
      action.action === 'fund-list' && action.methods.GET
        ? { ...action, methods: { ...action.methods, GET: { ...action.methods.GET, upstream } } }
        : action,
    ),
  })

it('C8.7 an operation has a path of its own; other operations of its backend keep theirs', async () => {
  const upstream = await startUpstream()
  const gateway = await postern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withUpstream({ path: '/v2/{business}/funds' }),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  await send(gateway, { target: `${LIST}?x=1`, headers: bearer(access_token) })
  await send(gateway, {
    method: 'POST',
    target: CREATE,
    body: NEW_FUND,
    headers: { ...bearer(access_token), ...JSON_BODY },
  })
  expect(upstream.requests.map(({ target }) => target)).toEqual(['/v2/ACME/funds?x=1', CREATE])
})

it('C8.7 an operation has a backend of its own; the upstream of its area gets none of its calls', async () => {
  const ofArea = await startUpstream()
  const own = await startUpstream(answerJson({ from: 'own' }))
  const gateway = await postern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: ofArea.url },
    change: (loaded) => {
      const funds = fundsOf(loaded)
      return withUpstream({ backend: 'lists' }, { lists: { ...funds, target: own.url } })(loaded)
    },
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const answer = await send(gateway, { target: LIST, headers: bearer(access_token) })
  expect(JSON.parse(answer.body)).toEqual({ Errors: [], Data: { from: 'own' } })
  expect(own.requests).toHaveLength(1)
  expect(ofArea.requests).toHaveLength(0)
})
