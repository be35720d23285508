import { describe, expect, expectTypeOf, it } from 'vitest'
import { openUserModule } from '../../../src/extensions/modules/open-module.ts'
import type { ModuleConfig } from '../../../src/extensions/modules/schema.ts'
import type { Module, ModuleAnswer } from '../../../src/base/contracts/calls/module.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { makeCall } from '../../support/calls.ts'
import { configFiles } from '../../support/config-files.ts'

async function open(source: Partial<ModuleConfig>) {
  const report = new Problems()
  const config = { options: {}, timeout: 60_000, idle: 60_000, responseHeaders: [], ...source }
  const funds: string[] = []
  const backend = await openUserModule('mine', config, report, {
    clock: systemClock,
    answerLimit: 1024,
    moduleFailed: () => undefined,
    funds: { addFund: (business, fund) => Promise.resolve(void funds.push(`${business}/${fund}`)) },
  })
  return {
    backend,
    funds,
    problems: report.list.map(({ path, message }) => `${path.join('.')} ${message}`),
  }
}

const opened = (name: string, text: string, more: Partial<ModuleConfig> = {}) =>
  open({ file: configFiles({ [name]: text })(name), ...more })

const VALUE = `answer: () => ({ body: { kind: 'value', value: options } })`

describe('C8.1: a module is found', () => {
  it.each([
    ['JavaScript', 'backend.mjs', `export default (options) => ({ ${VALUE} })`],
    ['CommonJS', 'backend.cjs', `module.exports = (options) => ({ ${VALUE} })`],
    [
      'CommonJS as compilers write it',
      'backend.cjs',
      `exports.__esModule = true; exports.default = (options) => ({ ${VALUE} })`,
    ],
    ['TypeScript', 'backend.mts', `export default async (options: unknown) => ({ ${VALUE} })`],
  ])('as a file of %s, and gets its options', async (_kind, name, text) => {
    const { backend, problems } = await opened(name, text, { options: { a: [1] } })
    expect(problems).toEqual([])
    expect(backend).toMatchObject({ name: 'mine', format: 'value', payload: 'bare' })
    expect((await backend!.answer(makeCall())).body).toEqual({ kind: 'value', value: { a: [1] } })
    await backend!.close()
  })

  it('C8.9 with functions of its own that are called `request` and `response`', async () => {
    const text = `export default (options) => ({ request() {}, response() {}, ${VALUE} })`
    const { backend, problems } = await opened('backend.mjs', text)
    expect(problems).toEqual([])
    expect((await backend!.answer(makeCall())).status).toBe(200)
  })

  it('C8.9 whose type has `answer`, or `request`, `response` or both', () => {
    const made: ModuleAnswer = { status: 404 }
    const [answer, request, response] = [() => made, () => undefined, () => made]
    expectTypeOf({ answer, close: () => undefined }).toExtend<Module>()
    expectTypeOf({ request }).toExtend<Module>()
    expectTypeOf({ response }).toExtend<Module>()
    expectTypeOf({ request, response, healthy: () => true }).toExtend<Module>()
    expectTypeOf({ close: () => undefined }).not.toExtend<Module>()
    expectTypeOf({ answer, request }).not.toExtend<Module>()
    expectTypeOf({ answer, response }).not.toExtend<Module>()
  })

  it('is told its name, and tells of funds that it makes', async () => {
    const { backend, funds } = await opened(
      'backend.mjs',
      `export default (options, context) => ({
        answer: () => (context.addFund('ACME', 'NEW'), { body: { kind: 'value', value: context.name } }) })`,
    )
    expect((await backend!.answer(makeCall())).body).toEqual({ kind: 'value', value: 'mine' })
    expect(funds).toEqual(['ACME/NEW'])
  })
})

describe('C8.1: a broken module is told with its name and why', () => {
  it.each([
    [
      'that is no JavaScript',
      'export default (',
      /^backends\.mine\.file names a module that is not usable: /,
    ],
    [
      'that throws when it is imported',
      `throw new Error('no licence')`,
      /^backends\.mine\.file .*no licence/,
    ],
    [
      'without a default export',
      'export const a = 1',
      /default export is undefined; expected a function that makes a module$/,
    ],
    ['whose default export is no function', 'export default { answer() {} }', /default export is object/],
    [
      'whose factory throws',
      `export default () => { throw new TypeError('options.url') }`,
      /TypeError: options\.url/,
    ],
    ['whose factory rejects', `export default async () => { throw new Error('refused') }`, /refused/],
    ['whose factory throws no error', `export default () => { throw 'why not' }`, /why not/],
    ['that makes nothing', 'export default () => {}', /no function `answer`; return an object with one$/],
    ['that makes something else', 'export default () => ({ answer: 1 })', /no function `answer`/],
    [
      'C8.9 that has `request` and no backend to send it to',
      'export default () => ({ request() {} })',
      /no backend to send requests to; name one in `over`, or make a function `answer`$/,
    ],
    [
      'C8.9 that has `response` and no backend that answers',
      'export default () => ({ response() {} })',
      /no backend to send requests to; name one in `over`, or make a function `answer`$/,
    ],
  ])('%s', async (_case, text, told) => {
    const { backend, problems } = await opened('backend.mjs', text)
    expect(backend).toBeUndefined()
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(told)
  })

  it('that never ends being made', async () => {
    const endless = 'export default () => new Promise(() => {})'
    const { backend, problems } = await opened('backend.mjs', endless, { timeout: 20 })
    expect(backend).toBeUndefined()
    expect(problems).toEqual([expect.stringMatching(/more than 20 ms/)])
  })

  it('that is not there', async () => {
    const { problems } = await open({ file: '/nowhere/backend.ts' })
    expect(problems[0]).toMatch(/^backends\.mine\.file .*backend\.ts/s)
    expect((await open({ package: 'no-such-package-here' })).problems[0]).toMatch(
      /^backends\.mine\.package .*no-such-package-here/s,
    )
  })

  it('that is named twice, or not at all', async () => {
    expect((await open({})).problems).toEqual([expect.stringMatching(/either `file` or `package`/)])
    expect((await open({ file: '/a', package: 'b' })).problems).toEqual([
      expect.stringMatching(/either `file` or `package`/),
    ])
  })

  it('C8.3 that would set a header of the connection', async () => {
    const { problems } = await opened('backend.mjs', `export default (options) => ({ ${VALUE} })`, {
      responseHeaders: ['Connection'],
    })
    expect(problems).toEqual([expect.stringMatching(/^backends\.mine\.responseHeaders\.0 /)])
  })
})
