import { describe, expect, it } from 'vitest'
import type { Backend } from '../../../src/base/contracts/calls/backend.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileActions } from '../../../src/gateway/actions/compile-actions.ts'
import { SETTINGS } from '../../support/settings.ts'
import { compileScopes } from '../../../src/base/config/scopes/schema.ts'

const plain: Backend = {
  name: 'plain',
  format: 'json',
  payload: 'bare',
  answer: () => Promise.reject(new Error('not asked')),
  close: () => Promise.resolve(),
}
const streaming: Backend = {
  ...plain,
  name: 'streaming',
  upgrade: { isAsked: () => false, take: () => Promise.reject(new Error('not asked')) },
}

function compile(backend: string, method: 'GET' | 'POST'): readonly string[] {
  const problems = new Problems()
  const operation = { scopes: { any: ['live'] }, versions: [1], items: {}, websocket: true }
  compileActions(
    [{ level: 'business', area: 'live', action: 'room', methods: { [method]: operation } }],
    {
      catalogue: compileScopes({ live: { description: 'Live', implies: [] } }, problems),
      backends: new Map([plain, streaming].map((each) => [each.name, each])),
      areas: { live: { backend } },
      upgrade: SETTINGS.added.backends.upgrade,
    },
    problems,
  )
  return problems.list.map(({ path, message }) => `${path.join('.')} ${message}`)
}

describe('T2.5 the configuration of websockets', () => {
  it('is for GET of an area whose backend takes upgrades', () => {
    expect(compile('streaming', 'GET')).toEqual([])
    expect(compile('streaming', 'POST')).toEqual([
      'actions.0.methods.POST.websocket is for GET only (RFC 6455 §4.1)',
    ])
    expect(compile('plain', 'GET')).toEqual([
      'actions.0.methods.GET.websocket needs a backend of kind stream',
    ])
  })
})
