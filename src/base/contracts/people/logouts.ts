/** Tells clients that a login has ended (C6.3.3a). All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface LogoutNotices {
  /** Queues the notices of a session. To be called before its record is removed: a process that dies in between loses none. */
  endSession(sid: string): Promise<void>
  /**
   * Queues the notices of all that a user has, in any browser; of everybody if none is named. To be called before all that is
   * ended.
   * @returns what forgets whom they go to, to be called when it has ended
   */
  endSubject(subject: string | undefined): Promise<() => Promise<void>>
}
