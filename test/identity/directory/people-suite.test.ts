import { onTestFinished } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import type { People } from '../../../src/base/contracts/people/people.ts'
import { LayeredPeople, StoredPeople } from '../../../src/identity/directory/records/people.ts'
import { readRecord } from '../../../src/identity/directory/records/read-records.ts'
import { clientRecordSchema, userRecordSchema } from '../../../src/identity/directory/records/schema.ts'
import {
  CLIENT,
  Roles,
  StoredDirectory,
  SUBJECT,
  USER,
} from '../../../src/identity/directory/records/stored-directory.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { makeDirectory } from '../../support/directory.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'
import { describePeople, type WrittenPeople } from '../../support/suites/people.contract.ts'
import { READING } from '../../support/settings.ts'

async function inStore({ clients, users }: WrittenPeople): Promise<People> {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  for (const [id, client] of Object.entries(clients)) {
    const record = readRecord(clientRecordSchema, { id, ...client }, new Problems())
    await store.create(CLIENT, id, { value: { record, ends: {} } })
  }
  for (const [username, user] of Object.entries(users)) {
    const record = readRecord(userRecordSchema, { username, ...user }, new Problems())
    await store.create(USER, username, { value: { record } })
    await store.create(SUBJECT, record!.subject, { value: { username } })
  }
  const feed = await ChangeFeed.open({ store, clock, recorder: keepNotes(), after: manualAfter().after })
  onTestFinished(() => feed.stop())
  const { roles } = await makeDirectory()
  const stored = new StoredDirectory({ store, feed, clock })
  return new StoredPeople(stored, new Roles(roles, stored), clock, READING.clientForm)
}

describePeople({
  name: 'People of a configuration',
  open: async (written) => (await makeDirectory(written)).people,
})

describePeople({ name: 'People of the store', open: inStore })

describePeople({
  name: 'People of the store beneath a configuration',
  open: async (written) => new LayeredPeople((await makeDirectory()).people, await inStore(written)),
})

describePeople({
  name: 'People of a configuration above an empty store',
  open: async (written) =>
    new LayeredPeople((await makeDirectory(written)).people, await inStore({ clients: {}, users: {} })),
})
