export default { one: 10 };
export const base = "NOK";
