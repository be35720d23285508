import type { Client, People, User } from '../contracts/people.ts'
import { mayHold } from '../directory/holdings.ts'

const holding = <T extends User | Client>(found: T | undefined): T | undefined =>
  found !== undefined && mayHold(found) ? found : undefined

/**
 * The people of the directory as identity sees them, at every door: whoever may not hold tokens is not found (C6.3.5). Rejects
 * where the directory cannot be reached.
 */
export interface Holders extends People {
  /** For the record (C12): whom a user name means, also of one who may hold nothing. */
  findSubject(username: string): Promise<string | undefined>
  /** For lists: the name of a client, also of one that may hold nothing. */
  findClientName(id: string): Promise<string | undefined>
}

export const holdersOf = (people: People): Holders => ({
  findClient: async (id) => holding(await people.findClient(id)),
  findUserByName: async (username) => holding(await people.findUserByName(username)),
  findUserBySubject: async (subject) => holding(await people.findUserBySubject(subject)),
  findSubject: async (username) => (await people.findUserByName(username))?.subject,
  findClientName: async (id) => (await people.findClient(id))?.name,
})
