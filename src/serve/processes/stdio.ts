/**
 * The descriptors of a worker process through which its records of the audit trail go to its supervisor, and through which it is
 * told of them. They are two, so that what cannot be told to a worker that has ended takes away none of its records.
 */
export const RECORDS_DESCRIPTOR = 4
export const PROGRESS_DESCRIPTOR = 5

/** The descriptors of a worker process, in their order: those of the supervisor, its messages, its records, their progress. */
export const STDIO: ('inherit' | 'ipc' | 'pipe')[] = ['inherit', 'inherit', 'inherit', 'ipc', 'pipe', 'pipe']
