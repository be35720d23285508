import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Explainer,
  ExplainerError,
  type ExplainerOptions,
  openExplainer,
} from '../../src/serve/start/explainer.ts'
import { configFiles } from '../support/config-files.ts'
import { runVerb } from '../support/command-line.ts'
import { ROOT } from '../support/spawn-postern.ts'

const DEMO = join(ROOT, 'config/demo.yaml')
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const ALICE = { client: 'acme-books', user: 'alice', target: 'b/ACME' }

async function opened(file: string, options: ExplainerOptions = {}): Promise<Explainer> {
  const explainer = await openExplainer(file, options)
  onTestFinished(() => explainer.close())
  return explainer
}

describe('postern/explain', () => {
  it('C14.1 explains calls by a configuration that nobody serves, and leaves nothing behind', async () => {
    const folders = async () =>
      (await readdir(tmpdir())).filter((name) => name.startsWith('postern-explain-'))
    const data = configFiles({})('data')
    const explainer = await openExplainer(DEMO, { environment: { POSTERN_DATA: data } })
    const mine = await folders()
    expect(await explainer.explain({ path: LIST, ...ALICE })).toMatchObject({ outcome: 'let in' })
    expect(
      await explainer.explain({ path: LIST, headers: { Accept: ['image/png'] }, ...ALICE }),
    ).toMatchObject({
      refusal: { clause: 'C4.10', status: 406 },
    })
    await explainer.close()
    expect((await folders()).filter((name) => mine.includes(name)).length).toBeLessThan(mine.length)
    expect(existsSync(data)).toBe(false)
  })

  it('C14.1 runs the example as it stands in config/', async () => {
    const args = ['--conditions=postern-source', '--test', 'config/examples/who-may-call.test.ts']
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
    expect(stdout).toMatch(/pass 3\n/)
  })

  it('C14.1 knows the clients and users of the store, which it only reads', async () => {
    const at = configFiles({})
    const env = { POSTERN_DATA: at('data'), POSTERN_CONFIG: DEMO }
    const added = await runVerb(
      ['user', 'add', 'dora', '--customer', 'acme-books', '--access', 'ACME=Read-only', '--config', DEMO],
      { env, input: 'a-long-password-of-dora\n' },
    )
    expect(added.stderr).toBe('')
    const before = readdirSync(at('data'))
    const question = { ...ALICE, user: 'dora', path: LIST }
    expect(await (await opened(DEMO, { environment: env })).explain(question)).toMatchObject({
      outcome: 'let in',
    })
    const without = await opened(DEMO, { environment: env, store: false })
    expect(await without.explain(question)).toMatchObject({ refusal: { reason: 'invalid_grant' } })
    expect(readdirSync(at('data'))).toEqual(before)
  })

  it('C14.1 decides at the time that it is given', async () => {
    const before = await opened(DEMO, { now: () => Date.parse('2026-01-14') })
    expect(await before.explain({ path: LIST, ...ALICE })).toMatchObject({
      refusal: { reason: 'unauthorized_client' },
    })
  })

  it('C14.1 refuses a configuration that could not be served, and says why', async () => {
    const at = configFiles({ 'bad.yaml': 'areas: { a: { backend: nothing } }\nnonsense: 1\n' })
    const error = await openExplainer(at('bad.yaml'), { environment: {} }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ExplainerError)
    expect((error as ExplainerError).problems.join('\n')).toContain('nonsense')
  })

  it.each([
    [{ user: 'a' }, 'beside'],
    [{ scope: 'a' }, 'beside'],
    [{ client: 'a', user: 'b', token: 'c' }, 'not both'],
  ])('C14.1 refuses a caller who is described by halves: %j', async (caller, why) => {
    const explainer = await opened(DEMO)
    await expect(explainer.explain({ path: LIST, ...caller })).rejects.toThrow(why)
  })

  it('C14.1 takes the callers of a sidecar at their word', async () => {
    const environment = {
      UPSTREAM_URL: 'http://127.0.0.1:1',
      ISSUER: 'http://127.0.0.1:1',
      ISSUER_JWKS: 'http://127.0.0.1:1/jwks',
      AUDIENCE: 'http://api.example',
    }
    const sidecar = await opened(join(ROOT, 'config/sidecar.yaml'), { environment })
    const caller = { client: 'any', user: 'anybody', target: 'b/ACME', scope: 'fund.read' }
    expect(await sidecar.explain({ path: LIST, ...caller })).toMatchObject({
      outcome: 'let in',
      caller: { by: 'claimed' },
    })
    expect(await sidecar.explain({ path: LIST, ...caller, scope: 'nothing' })).toMatchObject({
      refusal: { clause: 'C4.7' },
    })
    const asked = { client: 'any', user: 'anybody', target: 'b/ACME' }
    expect(await sidecar.explain({ path: LIST, ...asked })).toMatchObject({ refusal: { clause: 'C4.4' } })
  })
})
