import { describe, expect, it } from 'vitest'
import { compile, data, HTTP } from '../../support/compiled-backends.ts'
import { configFiles } from '../../support/config-files.ts'

describe('C8.9: the configuration of a module over a forwarder', () => {
  const { target, ...untargeted } = HTTP
  const module = (over: string, source = '{ request: () => undefined }') => ({
    kind: 'module' as const,
    file: configFiles({ 'around.mjs': `export default () => (${source})` })('around.mjs'),
    over,
    options: {},
    timeout: 1000,
    idle: 1000,
    responseHeaders: [],
  })

  it('C8.9 it has the formats of what it runs around, whatever comes first', async () => {
    const { backends, problems } = await compile({
      around: module('funds'),
      funds: { ...HTTP, format: 'xml' },
    })
    expect(problems).toEqual([])
    expect(backends.get('around')).toMatchObject({ name: 'around', format: 'xml', payload: 'bare' })
  })

  it.each([
    ['nothing', 'missing', 'names no backend: "missing"'],
    ['itself', 'around', 'names a backend that does not forward; expected one of kind http or stream'],
    ['a module', 'chain', 'names a backend that does not forward; expected one of kind http or stream'],
    ['sample data', 'sample', 'names a backend that does not forward; expected one of kind http or stream'],
  ])('C8.9 it is told with its key if `over` names %s', async (_case, over, problem) => {
    const { problems } = await compile({
      around: module(over),
      chain: module('funds'),
      sample: { kind: 'memory', data: data('config/demo-data.json') },
      funds: HTTP,
    })
    expect(problems).toEqual([`backends.around.over ${problem}`])
  })

  it('C8.9 targets of different paths are refused: what is signed must be what is sent', async () => {
    const targets = [`${target}/a`, `${target}/b`]
    const { problems } = await compile({ around: module('funds'), funds: { ...untargeted, targets } })
    expect(problems).toEqual(['backends.around.over names a backend whose targets have different paths'])
  })

  it('C8.9 a forwarder that cannot be opened is the only problem told', async () => {
    const { problems } = await compile({ around: module('funds'), funds: untargeted })
    expect(problems).toEqual(['backends.funds has no upstream; expected `target` or `targets`'])
  })

  it.each([
    [
      '{}',
      'has none of the functions `answer`, `request` and `response`; return an object with `answer`, or with `request`',
    ],
    [
      '{ answer: (call, forward) => forward() }',
      '`answer` takes one argument: use `call.forward` in place of the second',
    ],
    ['{ answer: () => 1, response: () => 1 }', 'has `answer` beside `request` or `response`'],
    ['{ answer: () => 1, request: () => 1 }', 'has `answer` beside `request` or `response`'],
  ])('C8.9 a module that makes %s is refused', async (source, problem) => {
    const { problems } = await compile({ around: module('funds', source), funds: HTTP })
    expect(problems).toEqual([expect.stringContaining(problem)])
  })
})
