export const mesh = {}
