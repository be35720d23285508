/** Resolves when everything that follows from already settled promises has run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
