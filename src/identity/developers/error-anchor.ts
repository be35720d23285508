/** The id of a code's part of the page about errors. @param key code and status: `API_NOT_FOUND 404` */
export const errorAnchor = (key: string): string => key.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
