import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Hasher } from '../../src/identity/directory/hashing/hasher.ts'
import { runVerb } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'

const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url))

/** What a command of the demo prints with `--json`, and what it says beside it. */
async function answer(data: string, line: string, input = '') {
  const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO }
  const { code, stdout, stderr } = await runVerb([...line.split(' '), '--json'], { env, input, alone: true })
  expect([code, stderr]).toEqual([0, expect.any(String)])
  return { value: JSON.parse(stdout) as Readonly<Record<string, unknown>>, stderr }
}

describe('C11.6 --json', () => {
  it('prints the keys that were made, and what was found about them', async () => {
    const data = await dataFolder()
    const { value: rotated } = await answer(data, 'keys rotate')
    expect(rotated).toEqual({
      made: expect.arrayContaining([
        { file: expect.stringMatching(/\.jwk$/), signsFrom: expect.any(Number) },
      ]),
    })
    const { value: listed } = await answer(data, 'keys list')
    expect(listed['keys']).toHaveLength((rotated['made'] as unknown[]).length)
    const { value: examined } = await answer(data, 'keys doctor')
    expect(examined['findings']).toContainEqual({ level: expect.any(String), text: expect.any(String) })
  })

  it('prints what was replaced after a theft, and asks elsewhere', async () => {
    const data = await dataFolder()
    await answer(data, 'keys rotate')
    const { value, stderr } = await answer(data, 'keys rotate --compromised --yes')
    expect(value).toMatchObject({ made: expect.any(Array), removed: expect.arrayContaining(['ES256-1.jwk']) })
    expect(stderr).toContain('Every access token and id_token issued so far will be refused')
  })

  it('prints a changed password’s user, a copy of the store and hashes', async () => {
    const data = await dataFolder()
    await answer(
      data,
      'user add dora --customer acme-books --access ACME=Administrator',
      'a-long-enough-password',
    )
    expect((await answer(data, 'user set-password dora', 'another-long-password')).value).toMatchObject({
      username: 'dora',
      changed: ['password'],
    })
    const file = join(data, 'copy.sqlite')
    expect((await answer(data, `backup ${file}`)).value).toEqual({
      file,
      without: { keys: join(data, 'keys'), trail: join(data, 'audit') },
    })
    const { value } = await answer(data, 'hash-password', 'a-long-enough-password')
    expect(await new Hasher().verify('a-long-enough-password', String(value['hash']))).toBe(true)
  })

  it.each(['client show nobody', 'user show nobody', 'business disable NOWHERE', 'status'])(
    'prints why it was refused: %s',
    async (line) => {
      const data = await dataFolder()
      const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO }
      const { code, stdout, stderr } = await runVerb([...line.split(' '), '--json'], { env })
      expect(code).toBe(1)
      const { error } = JSON.parse(stdout) as { readonly error: string }
      expect(stderr).toBe(`postern: ${error}\n`)
    },
  )
})
