/** What editors of the directory plan, done at once: for tests that need what comes of it, and not how it is recorded. */
import { planSecret } from '../../src/identity/directory/editors/client.ts'
import type { EndedLoss, PlannedStep } from '../../src/identity/directory/editors/editing.ts'
import type { RecordEditor } from '../../src/identity/directory/editors/record-editor.ts'
import type { Switchable } from '../../src/identity/directory/editors/record-kind.ts'
import { planPassword } from '../../src/identity/directory/editors/user.ts'
import type { ClientRecord, UserRecord } from '../../src/identity/directory/records/schema.ts'

type Plan<T> = () => Promise<PlannedStep<T>>

/** Plans and does it, again if somebody else was faster. */
async function done<T>(plan: Plan<T>): Promise<T> {
  for (;;) {
    const result = await (await plan()).commit()
    if (result !== undefined) return result
  }
}

export const acting = <R extends Switchable>(editor: RecordEditor<R>) => ({
  editor,
  async add(written: object) {
    const planned = await editor.planAdd(written)
    const secret = await planned.commit()
    return { record: planned.record, warnings: planned.warnings, secret }
  },
  show: (key: string) => editor.show(key),
  list: (page: Parameters<typeof editor.list>[0]) => editor.list(page),
  plan: (...args: Parameters<typeof editor.plan>) => editor.plan(...args),
  disable: (key: string): Promise<readonly EndedLoss[]> => done(() => editor.planSwitch(key, true)),
  enable: (key: string): Promise<readonly EndedLoss[]> => done(() => editor.planSwitch(key, false)),
  remove: (key: string) => done(() => editor.planRemoval(key)),
})

export const actingOnClients = (editor: RecordEditor<ClientRecord>) => ({
  ...acting(editor),
  rotateSecret: (id: string, overlap: number) => done(() => planSecret(editor, id, overlap)),
})

export const actingOnUsers = (editor: RecordEditor<UserRecord>) => ({
  ...acting(editor),
  setPassword: (username: string, password: unknown) => done(() => planPassword(editor, username, password)),
})
