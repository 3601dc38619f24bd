export const firmware = {}
