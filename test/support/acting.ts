/** What editors of the directory plan, done at once: for tests that need what comes of it, and not how it is recorded. */
import type { ClientEditor } from '../../src/identity/directory/editors/client-editor.ts'
import type { NounEditor } from '../../src/identity/directory/editors/editors.ts'
import type { EndedLoss, PlannedAdd, PlannedStep } from '../../src/identity/directory/editors/editing.ts'
import type { UserEditor } from '../../src/identity/directory/editors/user-editor.ts'

type Plan<T> = () => Promise<PlannedStep<T>>

/** Plans and does it, again if somebody else was faster. */
async function done<T>(plan: Plan<T>): Promise<T> {
  for (;;) {
    const result = await (await plan()).commit()
    if (result !== undefined) return result
  }
}

type Adding = Pick<NounEditor, 'show' | 'list' | 'plan' | 'planSwitch' | 'planRemoval'> & {
  planAdd(written: never): Promise<PlannedAdd>
}
type Written<E extends Adding> = Parameters<E['planAdd']>[0]
type RecordOf<E extends Adding> = Awaited<ReturnType<E['planAdd']>>['record']

export const acting = <E extends Adding>(editor: E) => ({
  editor,
  async add(written: Written<E>) {
    const planned = await editor.planAdd(written)
    const secret = await planned.commit()
    return { record: planned.record as RecordOf<E>, warnings: planned.warnings, secret }
  },
  show: (...args: Parameters<E['show']>) => editor.show(args[0]) as ReturnType<E['show']>,
  list: (...args: Parameters<E['list']>) => editor.list(args[0]) as ReturnType<E['list']>,
  plan: (...args: Parameters<E['plan']>) => editor.plan(args[0], args[1]),
  disable: (key: string): Promise<readonly EndedLoss[]> => done(() => editor.planSwitch(key, true)),
  enable: (key: string): Promise<readonly EndedLoss[]> => done(() => editor.planSwitch(key, false)),
  remove: (key: string) => done(() => editor.planRemoval(key)),
})

export const actingOnClients = (editor: ClientEditor) => ({
  ...acting(editor),
  rotateSecret: (id: string, overlap: number) => done(() => editor.planSecret(id, overlap)),
})

export const actingOnUsers = (editor: UserEditor) => ({
  ...acting(editor),
  setPassword: (username: string, password: unknown) => done(() => editor.planPassword(username, password)),
})
