/** The member of clients, wherever they are written. */
import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { DirectoryRefusal } from '../../../src/identity/directory/editors/editing.ts'
import { openEditors } from '../../../src/identity/directory/editors/editors.ts'
import { Hasher } from '../../../src/identity/directory/hashing/hasher.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { catalogue, makeDirectory } from '../../support/directory.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'
import { DEMO } from '../../support/spawn-postern.ts'

const MACHINE = {
  ...{ kind: 'machine', name: 'App', grants: ['client_credentials'], businesses: ['ACME'] },
  ...{ scopes: ['fund.read'], secrets: [`sha256:${'A'.repeat(43)}`] },
}
const PARTNER = {
  ...MACHINE,
  kind: 'partner',
  grants: ['authorization_code'],
  redirectUris: ['https://a.example'],
}

const to = (backchannelLogoutUri: string) => ({ backchannelLogoutUri })

/** Each message of one client, written in each way. */
async function told(client: object): Promise<readonly string[]> {
  const file = configFiles({
    'a.yaml': `extends: ${DEMO}\ndirectory: ${JSON.stringify({ clients: { app: client } })}\n`,
    'b.yaml': `extends: ${DEMO}\ndirectory: { files: { clients: list.jsonl } }\n`,
    'list.jsonl': JSON.stringify({ id: 'app', ...client }),
  })
  const inFile = async (name: string) =>
    (await SETTINGS.check(file(name), {})).list.map(
      ({ path, message }) => `${String(path.at(-1))} ${message}`,
    )
  const { client: editor } = openEditors({
    hasher: new Hasher(),
    ...{ store: new MemoryStore(systemClock), feed: { append: () => Promise.resolve() }, clock: systemClock },
    ...{ tokenRevoker: { end: () => Promise.reject(new Error('nothing ends')) }, catalogue },
    configured: await makeDirectory(),
  })
  // Its secret is generated.
  const written = { id: 'app', kind: '', ...client, secrets: undefined }
  const planned = await editor.planAdd(written).then(
    () => new Problems(),
    (thrown: unknown) => (thrown instanceof DirectoryRefusal ? thrown.problems : undefined),
  )
  const ofStore = planned?.list.map(({ path, message }) => `${String(path.at(-1))} ${message}`) ?? ['none']
  const [yaml, jsonl] = [await inFile('a.yaml'), await inFile('b.yaml')]
  return [...yaml, ...jsonl, ...ofStore]
}

describe('C6.3.3a the address of a client that is told', () => {
  it('C6.3.3a is https, or http on loopback', async () => {
    expect(await told({ ...PARTNER, ...to('https://a.example/out') })).toEqual([])
    expect(await told({ ...PARTNER, ...to('http://127.0.0.1/out') })).toEqual([])
  })
  it.each([
    [PARTNER, 'http://a.example/out', /http to another machine: who logs out would cross/],
    [PARTNER, 'a.example', /expected an https:/],
    [MACHINE, 'https://a.example/out', /means nothing for a machine/],
  ])('C6.3.3a is refused in each place with the same words: %#', async (client, uri, message) => {
    const all = await told({ ...client, ...to(uri) })
    expect(all).toHaveLength(3)
    for (const each of all) expect(each).toMatch(message)
  })
})
