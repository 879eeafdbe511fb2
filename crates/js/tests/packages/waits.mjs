await null; export default 1;
